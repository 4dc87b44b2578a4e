//! What each route takes and gives.

use holdfast_contract::{ToolCallEnvelope, ToolResultEnvelope};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::access::Access;
use crate::limits::{
    ADMIN_WORDS_BYTES_MAX, LISTED_RECORDS_MAX, PAGE_RECORDS_MAX, PAGE_RUNS_MAX, RUN_KEY_BYTES_MAX,
};
use crate::routes::{
    CALL, Declared, INVOKE, admin, approvals, chat, messages, models, openapi, probe, runs, undo,
};
use crate::shape::asked::ChatRequest;
use crate::shape::model::{Completion, ModelList, ModelShown, RunList, RunShown, RunStatus};
use crate::shape::tools::{
    ApprovalList, AuditList, BreakerList, Done, HealthShown, InvokeAnswer, InvokeRequest,
    MessageTaken, Overview, ReadyShown, RecordList,
};
use crate::shape::{ChatErrorBody, ErrorBody};

/// Describes a type.
pub type Use = fn(&mut SchemaGenerator) -> Schema;

/// A route, described.
pub struct Operation {
    /// Its method and path.
    at: (&'static str, &'static str),
    /// Its name for programs.
    pub id: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// The family it belongs to.
    pub tag: &'static str,
    /// What it takes beside its path.
    pub parameters: &'static [Parameter],
    /// Its body.
    pub takes: Takes,
    /// What it gives when it goes well, by status.
    gives: &'static [(u16, Answer)],
    /// What it gives when it does not, by status; the shape is `errors`.
    fails: &'static [u16],
    errors: Use,
}

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Where it stands.
    pub place: Where,
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What it may be.
    pub schema: Use,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// After the question mark.
    Query,
    /// In a header.
    Header,
}

/// What a route reads.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// JSON.
    Body {
        /// Its type.
        schema: Use,
        /// Whether there has to be one.
        needed: bool,
    },
}

/// What a route writes.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// JSON.
    Json(Use),
    /// JSON, or server-sent events.
    JsonOrStream(Use),
    /// Server-sent events.
    Stream,
    /// A text of this kind.
    Text(&'static str),
}

impl Operation {
    /// Whether it describes this route.
    pub fn is(&self, route: &Declared) -> bool {
        self.at == (route.method, route.path)
    }

    /// Every answer, by status. What stands before the routes is here for all of them: who may not
    /// come in, bodies that are too large or too slow, and a server that has no room or ends.
    pub fn answers(&self, access: Access) -> Vec<(u16, Answer)> {
        let mut all: Vec<(u16, Answer)> = self.gives.to_vec();
        let mut fails: Vec<u16> = vec![400, 403, 503];
        if access != Access::Open {
            fails.extend([401, 429]);
        }
        if matches!(self.takes, Takes::Body { .. }) {
            fails.extend([408, 413, 415]);
        }
        fails.extend(self.fails);
        fails.sort_unstable();
        fails.dedup();
        let known: Vec<u16> = all.iter().map(|(status, _)| *status).collect();
        let new = fails.into_iter().filter(|status| !known.contains(status));
        all.extend(new.map(|status| (status, Answer::Json(self.errors))));
        all
    }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Anything that is JSON.
fn any(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Value>()
}

fn refused(generator: &mut SchemaGenerator) -> Schema {
    of::<ErrorBody<'static>>(generator)
}

/// Of a route to the model: in its own shape, or in that of what stands before it.
fn chat_refused(generator: &mut SchemaGenerator) -> Schema {
    let (own, before) = (
        of::<ChatErrorBody<'static>>(generator),
        of::<ErrorBody<'static>>(generator),
    );
    json_schema!({"anyOf": [own, before]})
}

/// An envelope says what became of the call; what is no call gets an error.
fn call_refused(generator: &mut SchemaGenerator) -> Schema {
    let (own, before) = (
        of::<ToolResultEnvelope>(generator),
        of::<ErrorBody<'static>>(generator),
    );
    json_schema!({"anyOf": [own, before]})
}

fn invoke_refused(generator: &mut SchemaGenerator) -> Schema {
    let (own, before) = (
        of::<InvokeAnswer<'static>>(generator),
        of::<ErrorBody<'static>>(generator),
    );
    json_schema!({"anyOf": [own, before]})
}

/// An action, and who says they ask for it.
fn action(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = admin::action::Action::json_schema(generator);
    let ways = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    for way in ways.into_iter().flatten() {
        way["properties"]["operator"] =
            json!({"type": ["string", "null"], "maxLength": ADMIN_WORDS_BYTES_MAX});
    }
    schema
}

fn flag(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "boolean"})
}

fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string"})
}

fn run_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[!-~]([ -~]*[!-~])?$", "maxLength": RUN_KEY_BYTES_MAX})
}

fn runs_limit(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": PAGE_RUNS_MAX})
}

fn records_limit(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": PAGE_RECORDS_MAX})
}

fn records_offset(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0, "maximum": LISTED_RECORDS_MAX})
}

fn record_state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": admin::action::record_states()})
}

const fn query(name: &'static str, meaning: &'static str, schema: Use) -> Parameter {
    Parameter {
        place: Where::Query,
        name,
        meaning,
        schema,
    }
}

const RUN_KEY: Parameter = Parameter {
    place: Where::Header,
    name: "Idempotency-Key",
    meaning: "Makes several requests one run.",
    schema: run_key,
};
const RUN_PAGE: &[Parameter] = &[
    query("after", "The last run of the page before.", text),
    query("limit", "How many.", runs_limit),
];
const ALL: &[Parameter] = &[query("all", "Also what is over.", flag)];
const AUDIT_PAGE: &[Parameter] = &[query("limit", "How many.", records_limit)];
const RECORD_PAGE: &[Parameter] = &[
    query("limit", "How many.", records_limit),
    query("offset", "From where on.", records_offset),
    query("session", "Only of this session.", text),
    query("tool", "Only of this tool.", text),
    query("state", "Only in this state.", record_state),
];

/// A route that only looks, to be made special.
const fn get(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation {
        at: ("get", path),
        id,
        summary,
        tag: "tools",
        parameters: &[],
        takes: Takes::Nothing,
        gives: &[(200, Answer::Json(any))],
        fails: &[],
        errors: refused,
    }
}

const fn post(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    let mut operation = get(path, id, summary);
    operation.at = ("post", path);
    operation
}

impl Operation {
    const fn tag(mut self, tag: &'static str) -> Self {
        self.tag = tag;
        self
    }

    const fn with(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    const fn takes(mut self, schema: Use) -> Self {
        self.takes = Takes::Body {
            schema,
            needed: true,
        };
        self
    }

    const fn may_take(mut self, schema: Use) -> Self {
        self.takes = Takes::Body {
            schema,
            needed: false,
        };
        self
    }

    const fn gives(mut self, gives: &'static [(u16, Answer)]) -> Self {
        self.gives = gives;
        self
    }

    const fn fails(mut self, errors: Use, fails: &'static [u16]) -> Self {
        self.errors = errors;
        self.fails = fails;
        self
    }
}

/// All of them.
pub fn all() -> Vec<Operation> {
    [to_tools(), to_the_model(), for_people(), for_operators()]
        .into_iter()
        .flatten()
        .collect()
}

fn to_tools() -> Vec<Operation> {
    vec![
        post(CALL, "callTool", "Calls a tool with a call envelope.")
            .takes(of::<ToolCallEnvelope>)
            .gives(&[(200, Answer::Json(of::<ToolResultEnvelope>))])
            .fails(call_refused, &[404, 409, 422]),
        post(
            INVOKE,
            "invokeTool",
            "Calls a tool as the OpenClaw gateway does.",
        )
        .takes(of::<InvokeRequest>)
        .gives(&[(200, Answer::Json(of::<InvokeAnswer<'static>>))])
        .fails(invoke_refused, &[404, 409, 422, 500]),
        post(
            messages::PATH,
            "hear",
            "Takes what a person or a stranger said to a session.",
        )
        .takes(of::<messages::Message>)
        .gives(&[(200, Answer::Json(of::<MessageTaken>))])
        .fails(refused, &[404, 409]),
    ]
}

fn to_the_model() -> Vec<Operation> {
    const RUN: &[(u16, Answer)] = &[(200, Answer::Json(of::<RunShown<'static>>))];
    const STATUS: Answer = Answer::Json(of::<RunStatus<'static>>);
    let all = vec![
        post(chat::PATH, "complete", "Asks the model, which has tools.")
            .with(&[RUN_KEY])
            .takes(of::<ChatRequest>)
            .gives(&[(200, Answer::JsonOrStream(of::<Completion<'static>>))])
            .fails(chat_refused, &[404, 409, 422, 500]),
        get(models::PATH, "listModels", "The models.")
            .gives(&[(200, Answer::Json(of::<ModelList<'static>>))])
            .fails(chat_refused, &[]),
        get(models::ONE, "showModel", "One model.")
            .gives(&[(200, Answer::Json(of::<ModelShown<'static>>))])
            .fails(chat_refused, &[404]),
        get(runs::PATH, "listRuns", "The runs, newest first.")
            .with(RUN_PAGE)
            .gives(&[(200, Answer::Json(of::<RunList<'static>>))])
            .fails(chat_refused, &[500]),
        get(runs::ONE, "showRun", "One run.")
            .gives(RUN)
            .fails(chat_refused, &[404, 500]),
        get(
            runs::STREAM,
            "streamRun",
            "What happens in a run, from its beginning.",
        )
        .gives(&[(200, Answer::Stream)])
        .fails(chat_refused, &[404, 409, 500]),
        post(runs::CANCEL, "cancelRun", "Ends a run.")
            .gives(&[(200, STATUS), (202, STATUS)])
            .fails(chat_refused, &[404, 409, 500]),
        post(runs::RESUME, "resumeRun", "Goes on with an unfinished run.")
            .gives(&[(202, STATUS)])
            .fails(chat_refused, &[404, 409, 500]),
    ];
    all.into_iter().map(|it| it.tag("model")).collect()
}

fn for_people() -> Vec<Operation> {
    const ONE: &[(u16, Answer)] = &[(200, Answer::Json(any))];
    let all = vec![
        get(approvals::PATH, "listApprovals", "What waits for a person.")
            .with(ALL)
            .gives(&[(200, Answer::Json(of::<ApprovalList>))]),
        get(approvals::ONE, "showApproval", "One request.")
            .gives(ONE)
            .fails(refused, &[404]),
        post(approvals::APPROVE, "approve", "Yes.")
            .may_take(of::<approvals::Yes>)
            .gives(ONE)
            .fails(refused, &[404, 409]),
        post(approvals::DENY, "deny", "No.")
            .may_take(of::<approvals::No>)
            .gives(ONE)
            .fails(refused, &[404, 409]),
        get(
            undo::PATH,
            "listUndoPoints",
            "What calls have changed in the workspace, newest first.",
        )
        .gives(ONE)
        .fails(refused, &[404]),
        get(
            undo::ONE,
            "showUndoPoint",
            "What one point's calls changed.",
        )
        .gives(ONE)
        .fails(refused, &[404, 409]),
        post(
            undo::ONE,
            "undo",
            "Brings the workspace back to where it was before a point.",
        )
        .may_take(of::<undo::Wanted>)
        .gives(ONE)
        .fails(refused, &[404, 409]),
    ];
    all.into_iter().map(|it| it.tag("approvals")).collect()
}

fn for_operators() -> Vec<Operation> {
    let all = vec![
        get(probe::HEALTH, "health", "How the server is.").gives(&[
            (200, Answer::Json(of::<HealthShown<'static>>)),
            (503, Answer::Json(of::<HealthShown<'static>>)),
        ]),
        get(probe::READY, "ready", "Whether to send requests here.").gives(&[
            (200, Answer::Json(of::<ReadyShown<'static>>)),
            (503, Answer::Json(of::<ReadyShown<'static>>)),
        ]),
        get(probe::METRICS, "metrics", "What is counted.")
            .gives(&[(200, Answer::Text("application/openmetrics-text"))]),
        get(openapi::PATH, "openapi", "This document."),
        get(
            admin::PATH,
            "overview",
            "The reliability layer at a glance.",
        )
        .gives(&[(200, Answer::Json(of::<Overview<'static>>))]),
        post(
            admin::PATH,
            "act",
            "Changes something; it is in the audit log first.",
        )
        .takes(action)
        .gives(&[(200, Answer::Json(of::<Done>))])
        .fails(refused, &[404, 409]),
        get(admin::BREAKERS, "listBreakers", "The breakers.")
            .gives(&[(200, Answer::Json(of::<BreakerList>))]),
        get(admin::RECORDS, "listRecords", "The records, newest first.")
            .with(RECORD_PAGE)
            .gives(&[(200, Answer::Json(of::<RecordList>))]),
        get(admin::RECORD, "showRecord", "One record.").fails(refused, &[404, 409]),
        get(admin::AUDIT, "listAudit", "Who did what, newest first.")
            .with(AUDIT_PAGE)
            .gives(&[(200, Answer::Json(of::<AuditList>))]),
    ];
    all.into_iter().map(|it| it.tag("operation")).collect()
}

//! The routes, one file a family. Each names its access where it is declared, so that none can be
//! added without one.

pub mod admin;
pub mod approvals;
pub mod call;
pub mod chat;
pub mod invoke;
pub mod messages;
pub mod models;
pub mod openapi;
pub mod probe;
pub mod runs;
pub mod undo;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use http::StatusCode;

use crate::access::Access;
use crate::respond::{Refusal, text_response};
use crate::server::Server;

pub(crate) const CALL: &str = "/v1/tools/call";
pub(crate) const INVOKE: &str = "/tools/invoke";

/// The paths, as metrics name them.
const PATHS: &[&str] = &[
    CALL,
    INVOKE,
    chat::PATH,
    models::PATH,
    runs::PATH,
    probe::HEALTH,
    probe::READY,
    probe::METRICS,
    openapi::PATH,
    admin::PATH,
    admin::BREAKERS,
    admin::RECORDS,
    admin::AUDIT,
    approvals::PATH,
    undo::PATH,
    messages::PATH,
];

/// A route, as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared {
    /// `get` or `post`.
    pub method: &'static str,
    /// The path; names in braces stand for any one part.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
}

/// All routes, as they are declared.
pub fn declared() -> Vec<Declared> {
    routes().declared
}

/// All routes.
pub(crate) fn router(server: &Arc<Server>) -> Router {
    routes()
        .router
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(server.clone())
}

fn routes() -> Routes {
    use Access::{Admin, Approver, Caller, Client, Monitor, Open};
    Routes::default()
        .post(CALL, Caller, call::handle)
        .post(INVOKE, Caller, invoke::handle)
        .post(chat::PATH, Client, chat::handle)
        .get(models::PATH, Client, models::list)
        .get(models::ONE, Client, models::show)
        .get(runs::PATH, Caller, runs::list)
        .get(runs::ONE, Client, runs::show)
        .get(runs::STREAM, Client, runs::stream)
        .post(runs::CANCEL, Client, runs::cancel)
        .post(runs::RESUME, Client, runs::resume)
        .post(messages::PATH, Caller, messages::handle)
        .get(probe::HEALTH, Open, probe::health)
        .get(probe::READY, Open, probe::ready)
        .get(probe::METRICS, Monitor, probe::metrics)
        .get(openapi::PATH, Open, openapi::show)
        .get(admin::PATH, Admin, admin::overview)
        .post(admin::PATH, Admin, admin::act)
        .get(admin::BREAKERS, Admin, admin::breakers)
        .get(admin::RECORDS, Admin, admin::records)
        .get(admin::RECORD, Admin, admin::record)
        .get(admin::AUDIT, Admin, admin::audit)
        .get(approvals::PATH, Approver, approvals::list)
        .get(approvals::ONE, Approver, approvals::show)
        .post(approvals::APPROVE, Approver, approvals::approve)
        .post(approvals::DENY, Approver, approvals::deny)
        .get(undo::PATH, Approver, undo::list)
        .get(undo::ONE, Approver, undo::show)
        .post(undo::ONE, Approver, undo::undo)
}

/// The path as metrics name it: from a short list, whatever clients ask for.
pub(crate) fn label(path: &str) -> &'static str {
    if let Some(known) = PATHS.iter().find(|known| **known == path) {
        return known;
    }
    if path.starts_with(admin::RECORDS) {
        return admin::RECORDS;
    }
    for family in [approvals::PATH, models::PATH, runs::PATH, undo::PATH] {
        if path.starts_with(family) {
            return family;
        }
    }
    "other"
}

#[derive(Default)]
struct Routes {
    declared: Vec<Declared>,
    router: Router<Arc<Server>>,
}

impl Routes {
    fn get<F, A>(self, path: &'static str, access: Access, handler: F) -> Self
    where
        F: Fn(Arc<Server>, Request) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        self.add("get", MethodFilter::GET, path, access, handler)
    }

    fn post<F, A>(self, path: &'static str, access: Access, handler: F) -> Self
    where
        F: Fn(Arc<Server>, Request) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        self.add("post", MethodFilter::POST, path, access, handler)
    }

    /// The token is asked for before the handler sees the request, and before a byte of its body
    /// is read.
    fn add<F, A>(
        mut self,
        method: &'static str,
        filter: MethodFilter,
        path: &'static str,
        access: Access,
        handler: F,
    ) -> Self
    where
        F: Fn(Arc<Server>, Request) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        let guarded = move |State(server): State<Arc<Server>>, request: Request| async move {
            let mut admitted = server.admit(access, &request);
            // Which process asks is looked for only after its token has fit: it takes a while.
            if admitted.is_ok() && (access.is_for_people() || path == messages::PATH) {
                admitted = Server::admit_no_command(&request).await;
            }
            match admitted {
                Ok(()) => handler(server, request).await,
                // Clients of chat completions know errors in a shape of their own.
                Err(refusal) if access == Access::Client => {
                    chat::ChatError::not_let_in(refusal).respond(&server)
                }
                Err(refusal) => server.refuse(refusal),
            }
        };
        self.declared.push(Declared {
            method,
            path,
            access,
        });
        self.router = self.router.route(path, on(filter, guarded));
        self
    }
}

async fn not_found(State(server): State<Arc<Server>>) -> Response {
    server.refuse(Refusal::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "Not Found",
    ))
}

/// The gateway's route answers as the gateway does, with a text. The others say what they take; the
/// methods are in `Allow` for both.
async fn method_not_allowed(State(server): State<Arc<Server>>, request: Request) -> Response {
    if request.uri().path() == INVOKE {
        server.http.count_refused("method_not_allowed");
        return text_response(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    }
    let message = match request.uri().path() {
        CALL => "This route takes POST, with a call envelope as application/json",
        chat::PATH => "This route takes POST, with a chat completion request as application/json",
        admin::PATH => "This route takes GET, and POST with an action as application/json",
        _ => "This route takes GET",
    };
    server.refuse(Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        message,
    ))
}

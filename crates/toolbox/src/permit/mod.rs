//! The layer that says what is allowed.

mod config;
mod decide;

use std::sync::Arc;

use holdfast_contract::{ErrorCode, SessionContext, SessionKind, TierVerdict, Tool};
use holdfast_reliability::call::{Call, Failure, Judged, Reply};
use holdfast_reliability::exchange::Exchanged;
use holdfast_reliability::guard::FailureKind;
use holdfast_reliability::observe::Event;
use holdfast_reliability::policy::Mode;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::service::Service;
use holdfast_undo::UndoStore;
use serde_json::Value;

use crate::session::SessionTree;
use crate::tools::exec::handed_on;

pub use config::{
    APPROVAL_DENIAL_MS, APPROVAL_USE_WITHIN_MS, APPROVAL_WAIT_MS, APPROVAL_WAIT_MS_MAX,
    APPROVAL_WRITE_WAIT_MS, ApprovalConfig, ChannelPermission, PartyPermission, People,
    PermissionConfig, ToolPermission,
};
pub use decide::{Asked, Decision, decide};

/// What is allowed now. It can be exchanged while calls run: each is judged by one of them, whole.
pub type Permissions = Exchanged<PermissionConfig>;

/// Refuses what the policy does not allow, and notes down what a person has to answer first. Never
/// switched off by the reliability switches.
pub struct Permit<S> {
    inner: S,
    config: Arc<Permissions>,
    tree: Option<Arc<SessionTree>>,
    undo: Option<Arc<UndoStore>>,
    runtime: Arc<Runtime>,
}

impl<S: Service> Permit<S> {
    /// Wraps everything that acts. Without a tree nobody cancels sessions; without a store nothing can
    /// be undone.
    pub fn new(
        inner: S,
        config: Arc<Permissions>,
        tree: Option<Arc<SessionTree>>,
        undo: Option<Arc<UndoStore>>,
        runtime: Arc<Runtime>,
    ) -> Self {
        Self {
            inner,
            config,
            tree,
            undo,
            runtime,
        }
    }

    fn keeps_undo(&self, call: &Call) -> bool {
        let changes = |tool: &Arc<dyn Tool>| tool.may_change_workspace();
        call.tool.as_ref().is_some_and(changes)
            && (self.undo.as_ref()).is_some_and(|it| it.keeps(&call.session.workspace_root))
    }

    /// Why nothing runs in the call's session, if a person has ended it. A store that is away
    /// refuses what acts already, further in.
    async fn cancelled(&self, call: &Call) -> Option<String> {
        let tree = self.tree.as_ref()?;
        if call.session.kind != SessionKind::Main {
            // What a child may do is what its context holds.
            return None;
        }
        match tree.refusal(&call.session.session_id).await {
            Ok(refusal) => refusal,
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "session",
                    error: &error,
                });
                None
            }
        }
    }
}

/// What the policy says about a call whose tool is known.
pub(crate) fn decision(config: &PermissionConfig, call: &Call) -> Decision {
    let Some(tool) = &call.tool else {
        return Decision::Allow;
    };
    if let Some(why) = &call.session.halted {
        return Decision::Deny(why.clone());
    }
    let params = &call.envelope.payload.params;
    let mut verdict = tool.tier_for(params, &call.session);
    let handed = tool.hands_on(params);
    handed_on(&handed, &call.session, &config.commands, &mut verdict);
    if !call.keeps_undo {
        for reason in std::mem::take(&mut verdict.unless_undone) {
            verdict.raise_exact(reason);
        }
    }
    let route = call.session.approval.as_ref();
    decide(
        config,
        &Asked {
            tool: tool.name(),
            declared: tool.permission_tier(),
            verdict: &verdict,
            arguments: params,
            agent: &call.session.agent_id,
            concerns: &call.concerns,
            channel: route.map(|route| (route.channel.as_str(), route.level)),
        },
    )
}

/// Whether a session could have any call of a tool run, whatever its arguments. What a person may
/// approve could run, if there is somebody to ask.
pub(crate) fn could_run(
    config: &PermissionConfig,
    tool: &dyn Tool,
    session: &SessionContext,
    asks_people: bool,
) -> bool {
    if !tool.is_available(session) {
        return false;
    }
    // No arguments make a call need less than its tool declares.
    let declared = tool.permission_tier();
    let route = session.approval.as_ref();
    let decided = decide(
        config,
        &Asked {
            tool: tool.name(),
            declared,
            verdict: &TierVerdict::declared(declared),
            arguments: &Value::Null,
            agent: &session.agent_id,
            concerns: &[],
            channel: route.map(|route| (route.channel.as_str(), route.level)),
        },
    );
    match decided {
        Decision::Allow => true,
        Decision::Deny(_) => false,
        Decision::Ask(need) => !need.gate.waits() || (asks_people && route.is_some()),
    }
}

/// Says no, to the caller and to whoever watches.
pub(crate) fn deny(call: &mut Call, runtime: &Runtime, reason: String) -> Reply {
    let code = ErrorCode::PermissionDenied;
    runtime.tell(&Event::Blocked {
        call,
        code: code.as_str(),
        why: &reason,
        mode: Mode::Enforce,
    });
    call.explain(reason.clone());
    Failure::before_start(code, reason, Judged::Counts(FailureKind::Permission)).into()
}

impl<S: Service> Service for Permit<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        if self.tree.is_some()
            && let Some(why) = Box::pin(self.cancelled(call)).await
        {
            return deny(call, &self.runtime, why);
        }
        call.keeps_undo = self.keeps_undo(call);
        match decision(&self.config.now(), call) {
            Decision::Allow => {}
            Decision::Deny(rule) => return deny(call, &self.runtime, rule),
            Decision::Ask(need) => call.need = Some(need),
        }
        self.inner.call(call).await
    }
}

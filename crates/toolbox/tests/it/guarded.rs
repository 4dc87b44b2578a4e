//! What a command has to leave alone: the state, and the processes of others.

use std::path::Path;
use std::sync::Arc;

use holdfast_confine::{ConfinementConfig, Kernel};
use holdfast_contract::{CallContext, Reason, SessionContext, ToolContext};
use holdfast_toolbox::tools::own_places;

pub(crate) const SECRET: &str = "the-approver-token-of-this-test";

/// A call in a workspace, with a state that no tool may reach, and what a person has said yes to.
pub(crate) fn context(workspace: &Path, state: &Path, approved: &[&str]) -> ToolContext {
    let root = workspace.canonicalize().expect("is there");
    let mut session = SessionContext::main("session", "agent", root);
    session.own_places = own_places(&ConfinementConfig::default(), Kernel::probe(), None);
    session.reserved = vec![state.canonicalize().expect("is there")];
    if let Some(exec) = &mut session.exec {
        let reasons = approved.iter().map(|code| Reason::new(code, "x", "x"));
        exec.approved = reasons.collect();
    }
    ToolContext {
        session: Arc::new(session),
        call: CallContext::default(),
    }
}

/// A process of the same user that no command started; it ends with the test.
pub(crate) struct Bystander(pub(crate) std::process::Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        let mut sleep = std::process::Command::new("sleep");
        Self(sleep.arg("1000").spawn().expect("starts"))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! What a server tells people when it begins and ends.

use std::io::IsTerminal;
use std::net::SocketAddr;

use holdfast_reliability::config::StoreKind;
use holdfast_server::Ended;
use serde_json::json;

use super::Shown;
use crate::app::App;
use crate::args::server::ServeArgs;
use crate::commands::doctor;
use crate::executor_file;
use crate::output;
use crate::running::Running;

/// How a server says that it begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// As JSON on standard output.
    Json,
    /// In words on standard output.
    Words,
    /// In words on standard error: standard output is the log's, whose lines are JSON.
    Aside,
}

impl Says {
    pub(super) fn of(app: &App, json: bool) -> Self {
        match json {
            true => Self::Json,
            false if executor_file::logs_json_to_stdout(&app.config) => Self::Aside,
            false => Self::Words,
        }
    }

    /// Whether a person sits before it.
    pub(super) fn has_a_reader(self) -> bool {
        self != Self::Json && std::io::stderr().is_terminal()
    }

    fn say(self, text: &str) {
        match self {
            Self::Json | Self::Words => output::line(text),
            Self::Aside => output::note(text),
        }
    }
}

/// What a person wants to know of a server that has started, on one screen.
pub(super) async fn greeting(
    app: &App,
    args: &ServeArgs,
    running: &Running,
    address: SocketAddr,
    shown: &Shown,
) {
    let row = |name: &str, text: &str| output::note(&format!("  {name:<10} {text}"));
    row("address", &format!("http://{address}"));
    for check in doctor::servers(app, &args.model).await {
        row(check.name, &check.found);
    }
    let registry = running.stack.registry();
    let tools: Vec<&str> = registry.iter().map(|found| found.tool.name()).collect();
    row("tools", &tools.join(", "));
    let workspace = args.workspace.canonicalize().unwrap_or_default();
    row("workspace", &workspace.display().to_string());
    row("token", &shown.caller);
    row(
        "",
        &format!("admin: {}, approvals: {}", shown.admin, shown.approver),
    );
}

pub(super) fn started(app: &App, address: SocketAddr, shown: &Shown, store: &str, says: Says) {
    if says == Says::Json {
        output::json(&json!({
            "event": "server_started",
            "url": format!("http://{address}"),
            "address": address.ip().to_string(),
            "port": address.port(),
            "token": shown.caller,
            "adminToken": shown.admin,
            "approverToken": shown.approver,
            "store": store,
            "state": app.state_dir,
            "pid": std::process::id(),
        }));
        return;
    }
    let settings = &app.config.reliability.store;
    let place = match settings.kind {
        // An address is shown without its password.
        StoreKind::Redis => format!(
            "at {} under {:?}; state in {}",
            settings.redis.url,
            settings.redis.prefix,
            app.state_dir.display()
        ),
        StoreKind::Sqlite | StoreKind::Memory => format!("in {}", app.state_dir.display()),
    };
    says.say(&format!(
        "{} Serving on http://{address} (token: {}, admin token: {}, store: {store} {place})",
        output::green("✓"),
        shown.caller,
        shown.admin,
    ));
}

pub(super) fn say_ended(ended: Ended, unrecorded: usize, says: Says) {
    if unrecorded > 0 {
        output::note(&format!(
            "Redis is away and did not take the records of {unrecorded} calls: they turn outcome_unknown when their leases end."
        ));
    }
    let cancelled = match ended {
        Ended::Idle => 0,
        Ended::Cancelled { requests } => requests,
    };
    if says == Says::Json {
        output::json(
            &json!({"event": "server_ended", "cancelledRequests": cancelled, "unrecordedCalls": unrecorded}),
        );
    } else if cancelled == 0 {
        says.say("Ended; every request was answered.");
    } else {
        says.say(&format!(
            "Ended; {cancelled} requests were cancelled. `holdfast dedupe list` shows what became of their calls."
        ));
    }
}

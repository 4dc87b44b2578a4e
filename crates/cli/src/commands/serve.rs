//! `holdfast serve`

mod says;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use holdfast_agent::runs::RUN_OWNER_LEASE_MS;
use holdfast_reliability::janitor::Janitor;
use holdfast_reliability::observe::Observer;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_server::health::TroubleWatch;
use holdfast_server::running::Running;
use holdfast_server::{ExecutorParts, Parts, Server, ServerConfig, Settings, Token, Tokens, serve};
use holdfast_toolbox::session::SessionTree;
use holdfast_toolbox::token::{ADMIN_TOKEN_FILE, APPROVER_TOKEN_FILE, TOKEN_FILE, TokenError};
use holdfast_toolbox::tools::exec;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::says::{Says, greeting, say_ended, started};
use super::reload::Reload;
use crate::app::{App, workspace_id};
use crate::args::GlobalArgs;
use crate::args::server::ServeArgs;
use crate::config::expand;
use crate::environment;
use crate::executor;
use crate::executor_file::{self, Stdout};
use crate::fail::{Failure, Outcome};
use crate::loud::{self, Loud};

/// How long commands of cancelled calls may take to end before we go without them.
const EXEC_END_WAIT: Duration = Duration::from_secs(3);

/// How often expired documents are forgotten.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

pub(super) fn run(global: &GlobalArgs, args: &ServeArgs) -> Outcome<ExitCode> {
    let app = App::new_for_server(global)?;
    let mut config = app.config.server.clone();
    if let Some(listen) = &args.listen {
        config.listen.clone_from(listen);
    }
    let settings = config.settings().map_err(|problems| {
        let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(list.join("\n"))
    })?;
    private_dir(&app.state_dir)?;
    let found = FoundTokens::find(&app, &config, &settings)?;
    let shown = found.shown.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("the runtime can not be started: {error}")))?;
    let (ended, unrecorded, running) = runtime.block_on(async {
        let listener = bind(&settings).await?;
        let (server, running) = server(&app, args, settings, found.tokens)?;
        let address = listener.local_addr().map_err(|error| {
            Failure::failed(format!("the address can not be found out: {error}"))
        })?;
        let (end, hurry) = signals()?;
        let _janitor = Janitor::start(
            running.stores.dedupe.clone(),
            running.stack.runtime().clone(),
            Some(running.metrics.clone()),
        );
        let me = Running {
            url: format!("http://{address}"),
            pid: std::process::id(),
            started_at_ms: app.clock.now_ms(),
        };
        let _announced = me.announce(&app.state_dir).map_err(|error| {
            Failure::failed(format!(
                "{} can not be written: {error}",
                app.state_dir.display()
            ))
        })?;
        // Without a store nothing can be resumed, and calls say why.
        let _ = server.resume_all().await;
        let _ = server.resume_runs().await;
        let says = Says::of(&app, global.json);
        started(&app, address, &shown, running.store_name, says);
        let sweeping = tokio::spawn(sweep(
            running.all_documents(),
            running.subagents.as_ref().map(|it| it.tree().clone()),
        ));
        let reload = Reload {
            global: global.clone(),
            listen: args.listen.clone(),
            model: args.model.clone(),
            started: app.config.clone(),
            server: server.clone(),
            stack: running.stack.clone(),
        };
        let reloading = reload.on_hangup()?;
        let taking_up = tokio::spawn(take_up(server.clone()));
        let looking = tokio::spawn(server.clone().look_for_approved());
        let greeted = async {
            if says.has_a_reader() {
                greeting(&app, args, &running, address, &shown).await;
            }
        };
        let mut serving = std::pin::pin!(serve(server, listener, end, hurry));
        // A model server that does not answer holds up no end.
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = greeted => serving.await,
        };
        sweeping.abort();
        reloading.abort();
        taking_up.abort();
        looking.abort();
        let unrecorded = running.written_back().await;
        Ok::<_, Failure>((ended, unrecorded, running))
    })?;
    let says = Says::of(&app, global.json);
    // Commands of cancelled calls are being ended, gently first; our own end would be abrupt.
    exec::wait_until_idle(EXEC_END_WAIT);
    running.finish();
    say_ended(ended, unrecorded, says);
    Ok(ExitCode::SUCCESS)
}

/// Ends the sessions whose time is over, and forgets documents that have expired, now and then: ended
/// runs and answered approvals.
async fn sweep(stores: Vec<Arc<dyn DocumentStore>>, tree: Option<Arc<SessionTree>>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        if let Some(tree) = &tree {
            // What could not be ended now is ended the next time.
            let _ = tree.tick().await;
        }
        for documents in &stores {
            // What could not be swept now is swept the next time.
            let _ = documents.sweep_documents().await;
        }
    }
}

/// Goes on with the runs of processes that are gone, and with those that this one had to let go of
/// because the state was away.
async fn take_up(server: Arc<Server>) {
    loop {
        tokio::time::sleep(Duration::from_millis(RUN_OWNER_LEASE_MS)).await;
        // A store that is away has nothing to tell now.
        let _ = server.resume_runs().await;
    }
}

fn private_dir(dir: &Path) -> Outcome<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| {
        Failure::failed(format!(
            "the state directory {} can not be made: {error}",
            dir.display()
        ))
    })
}

async fn bind(settings: &Settings) -> Outcome<TcpListener> {
    TcpListener::bind(settings.listen).await.map_err(|error| {
        Failure::failed(format!(
            "{} can not be listened on: {error}",
            settings.listen
        ))
        .hint("Another program may have the port; `--listen 127.0.0.1:0` takes a free one.")
    })
}

fn server(
    app: &App,
    args: &ServeArgs,
    settings: Settings,
    tokens: Tokens,
) -> Outcome<(Arc<Server>, crate::running::Running)> {
    let trouble = Arc::new(TroubleWatch::new(app.clock.clone(), app.config.redactor()));
    let running = app.stack_for_server(&args.workspace, watcher(app, &trouble)?)?;
    let audit = Arc::new(app.audit_log(running.documents.clone()));
    let workspace = args.workspace.canonicalize();
    let server = Server::new(Parts {
        stack: running.stack.clone(),
        stores: running.stores.clone(),
        store_name: running.store_name.to_owned(),
        metrics: running.metrics.clone(),
        settings,
        tokens,
        audit,
        approvals: running.approvals.clone(),
        trouble,
        workspace_id: workspace_id(&args.workspace),
        // The stack above could not have been made without it.
        workspace: workspace.unwrap_or_default(),
        undo: app.undo_for_calls(),
        executor: executor(app, args, &running)?,
    });
    Ok((server, running))
}

/// Who watches the calls, and says aloud what the log does not say there already.
fn watcher(app: &App, trouble: &Arc<TroubleWatch>) -> Outcome<Arc<dyn Observer>> {
    if app.logs_to_stderr() {
        return Ok(trouble.clone());
    }
    let loud = Loud::new(trouble.clone(), app.config.redactor())
        .map_err(|error| loud::unwritable(&error))?;
    Ok(Arc::new(loud))
}

/// The model and its runs, where one is configured.
fn executor(
    app: &App,
    args: &ServeArgs,
    running: &crate::running::Running,
) -> Outcome<Option<ExecutorParts>> {
    let Some(model) = executor::model(app, &args.model)? else {
        return Ok(None);
    };
    Ok(Some(ExecutorParts {
        runs: executor::runs(app, running, &args.workspace, model, Stdout::Free)?,
        models: executor_file::served(&app.config),
        requests_per_minute_max: app.config.executor.requests_per_minute_max,
        gateway: app.config.gateway_offered(),
    }))
}

/// The first signal ends the server, the second one its patience.
fn signals() -> Outcome<(impl Future<Output = ()>, impl Future<Output = ()>)> {
    let heard = |kind| {
        signal(kind)
            .map_err(|error| Failure::failed(format!("signals can not be listened to: {error}")))
    };
    let both = || {
        Ok::<_, Failure>((
            heard(SignalKind::interrupt())?,
            heard(SignalKind::terminate())?,
        ))
    };
    let (end, hurry) = (both()?, both()?);
    Ok((one_of(end, 1), one_of(hurry, 2)))
}

async fn one_of((mut interrupt, mut terminate): (Signal, Signal), times: u32) {
    for _ in 0..times {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// The tokens, and where people find them.
struct FoundTokens {
    tokens: Tokens,
    shown: Shown,
}

#[derive(Clone)]
struct Shown {
    caller: String,
    admin: String,
    approver: String,
}

/// What would keep a server from starting, found without making anything.
pub(super) fn check(app: &App) -> Outcome<()> {
    let config = &app.config.server;
    let settings = config.settings().map_err(|problems| {
        let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(list.join("\n"))
    })?;
    check_reach(config, &settings)?;
    for (variable, file) in [
        (environment::SERVER_TOKEN, &config.token_file),
        (environment::ADMIN_TOKEN, &config.admin_token_file),
    ] {
        // One that nobody named is made on the first start.
        if environment::get(variable).is_some() || file.is_some() {
            token(variable, file.as_deref(), Path::new(""))?;
        }
    }
    executor::keys(&app.config.executor).map(|_| ())
}

/// What others can reach has a token that they were given.
fn check_reach(config: &ServerConfig, settings: &Settings) -> Outcome<()> {
    let configured =
        environment::get(environment::SERVER_TOKEN).is_some() || config.token_file.is_some();
    if settings.is_local() || configured {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} can be reached from other machines, and no token was configured for it",
        settings.listen
    ))
    .hint("Set HOLDFAST_SERVER_TOKEN or server.tokenFile, or listen on 127.0.0.1."))
}

impl FoundTokens {
    fn find(app: &App, config: &ServerConfig, settings: &Settings) -> Outcome<Self> {
        check_reach(config, settings)?;
        let (caller, caller_shown) = token(
            environment::SERVER_TOKEN,
            config.token_file.as_deref(),
            &app.state_dir.join(TOKEN_FILE),
        )?;
        let (admin, admin_shown) = token(
            environment::ADMIN_TOKEN,
            config.admin_token_file.as_deref(),
            &app.state_dir.join(ADMIN_TOKEN_FILE),
        )?;
        // Always in the state directory, where no tool gets: neither the environment nor a file
        // elsewhere is as safe a place.
        let path = app.state_dir.join(APPROVER_TOKEN_FILE);
        let approver =
            Token::read_or_make(&path).map_err(|error| Failure::usage(error.to_string()))?;
        let approver_shown = path.display().to_string();
        let prints = [&caller, &admin, &approver].map(Token::fingerprint);
        if prints[0] == prints[1] || prints[0] == prints[2] || prints[1] == prints[2] {
            return Err(Failure::usage(
                "the tokens for calls, for admin actions and for approvals have to differ",
            ));
        }
        Ok(Self {
            tokens: Tokens {
                caller,
                admin,
                approver,
                clients: executor::keys(&app.config.executor)?,
            },
            shown: Shown {
                caller: caller_shown,
                admin: admin_shown,
                approver: approver_shown,
            },
        })
    }
}

/// From the environment, else from the configured file, else from the state directory.
fn token(variable: &str, file: Option<&str>, made: &Path) -> Outcome<(Token, String)> {
    let wrong = |error: TokenError| Failure::usage(error.to_string());
    if let Some(text) = environment::get(variable) {
        let token =
            Token::chosen(&text).map_err(|error| Failure::usage(format!("{variable}: {error}")))?;
        return Ok((token, format!("${variable}")));
    }
    if let Some(path) = file {
        let path: PathBuf = expand(path);
        let token = Token::read(&path).map_err(wrong)?;
        return Ok((token, path.display().to_string()));
    }
    let token = Token::read_or_make(made).map_err(wrong)?;
    Ok((token, made.display().to_string()))
}

/// The admin token as commands with `--server` find it; nothing is made.
pub(super) fn admin_token(app: &App) -> Outcome<Token> {
    let made = app.state_dir.join(ADMIN_TOKEN_FILE);
    let file = app.config.server.admin_token_file.as_deref();
    if environment::get(environment::ADMIN_TOKEN).is_none() && file.is_none() && !made.exists() {
        return Err(Failure::failed(format!(
            "there is no admin token in {}",
            app.state_dir.display()
        ))
        .hint("Say which state directory the server uses with --state DIR, or set HOLDFAST_ADMIN_TOKEN."));
    }
    token(environment::ADMIN_TOKEN, file, &made).map(|(token, _)| token)
}

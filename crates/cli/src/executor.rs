//! The model server, as it is configured, and the runs on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_agent::model::{Http2, HttpModel, HttpModelConfig, Model};
use holdfast_agent::run::Loop;
use holdfast_agent::runs::{
    Owner, RUNS_BYTES_MAX, RUNS_MAX, RUNS_WAITING_MAX, RunStore, Runs, RunsLimits,
};
use holdfast_agent::subagents::Subagents;
use holdfast_reliability::config::{ConfigProblem, StoreKind};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_server::limits::REQUESTS_PER_MINUTE_MAX;
use holdfast_toolbox::session::SessionTree;
use holdfast_toolbox::token::{Token, TokenError};
use holdfast_toolbox::trust::TrustBook;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::args::executor::ModelArgs;
use crate::config::expand;
use crate::environment;
use crate::executor_file::{self, Stdout};
use crate::fail::{Failure, Outcome};
use crate::records;
use crate::running::{Running, own_places};

/// No count is larger than this.
const COUNT_MAX: usize = 100_000;
/// No rate is larger than this: for whoever wants none.
const RATE_MAX: usize = 100_000_000;

/// `executor:` in the configuration: the model that is given our tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ExecutorConfig {
    /// The model's server, such as `http://127.0.0.1:8000`; anything that speaks chat completions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_url: Option<String>,
    /// The model's name, as its server knows it.
    pub(crate) model: String,
    /// The variable that holds the key of the model's server.
    pub(crate) api_key_env: String,
    /// A file with the keys of clients, one a line. With keys, nobody gets in without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keys_file: Option<String>,
    /// Requests of one client within a minute.
    pub(crate) requests_per_minute_max: u32,
    /// Runs at once.
    pub(crate) runs_max: usize,
    /// Requests that wait for a run to end.
    pub(crate) runs_waiting_max: usize,
    /// Bytes that all runs hold together.
    pub(crate) runs_bytes_max: usize,
}

impl Default for ExecutorConfig {
    fn default() -> Self {
        Self {
            model_url: None,
            model: "gpt-oss".to_owned(),
            api_key_env: environment::MODEL_KEY.to_owned(),
            keys_file: None,
            requests_per_minute_max: REQUESTS_PER_MINUTE_MAX,
            runs_max: RUNS_MAX,
            runs_waiting_max: RUNS_WAITING_MAX,
            runs_bytes_max: RUNS_BYTES_MAX,
        }
    }
}

impl ExecutorConfig {
    /// What is wrong with it.
    pub(crate) fn problems(&self) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let mut check = |name: &str, value: usize, least: usize, most: usize| {
            if !(least..=most).contains(&value) {
                let why = format!("has to be between {least} and {most}");
                problems.push(ConfigProblem::new(format!("executor.{name}"), why));
            }
        };
        let per_minute = usize::try_from(self.requests_per_minute_max).unwrap_or(usize::MAX);
        check("requestsPerMinuteMax", per_minute, 1, RATE_MAX);
        check("runsMax", self.runs_max, 1, COUNT_MAX);
        check("runsWaitingMax", self.runs_waiting_max, 0, COUNT_MAX);
        check("runsBytesMax", self.runs_bytes_max, 1, usize::MAX);
        if let Some(url) = &self.model_url
            && let Err(why) = HttpModel::new(&HttpModelConfig {
                base_url: url.clone(),
                model: self.model.clone(),
                api_key: None,
                http2: Http2::default(),
            })
        {
            problems.push(ConfigProblem::new("executor.modelUrl", why));
        }
        problems
    }

    pub(crate) fn limits(&self) -> RunsLimits {
        RunsLimits {
            runs_max: self.runs_max,
            waiting_max: self.runs_waiting_max,
            bytes_max: self.runs_bytes_max,
        }
    }
}

/// The model that was typed, else that of the environment, else that of the file.
pub(crate) fn model(app: &App, args: &ModelArgs) -> Outcome<Option<Arc<dyn Model>>> {
    let config = &app.config.executor;
    let typed = args.model_url.clone();
    let url = typed
        .or_else(|| environment::get(environment::MODEL_URL))
        .or_else(|| config.model_url.clone());
    let name = args.model.clone();
    let name = name.or_else(|| environment::get(environment::MODEL));
    let key = environment::named(&config.api_key_env);
    if app.config.file.is_some() {
        let typed = executor_file::Typed {
            url,
            model: name,
            key,
        };
        return executor_file::model(app, &typed);
    }
    let Some(base_url) = url else {
        return Ok(None);
    };
    let made = HttpModel::new(&HttpModelConfig {
        base_url,
        model: name.unwrap_or_else(|| config.model.clone()),
        api_key: key,
        http2: Http2::default(),
    });
    made.map(|server| Some(Arc::new(server) as Arc<dyn Model>))
        .map_err(|why| Failure::usage(format!("the model server can not be used: {why}")))
}

/// The runs of this process on a model.
pub(crate) fn runs(
    app: &App,
    running: &Running,
    workspace: &Path,
    model: Arc<dyn Model>,
    stdout: Stdout,
) -> Outcome<Arc<Runs>> {
    executor_file::warn(&app.config);
    let store = store(app, running, workspace)?;
    let mut agent = Loop::new(model, running.stack.clone());
    if let Some(watch) = executor_file::watch(app, stdout)? {
        agent = agent.with_watch(watch);
    }
    let runs = Runs::new(agent, store, app.config.executor.limits());
    if let Some(subagents) = &running.subagents {
        runs.adopt(subagents.clone());
    }
    Ok(runs)
}

/// The sessions of a state.
pub(crate) fn tree(
    app: &App,
    documents: &Arc<dyn DocumentStore>,
    runtime: &Arc<Runtime>,
    trust: &Arc<TrustBook>,
    reserved: Vec<PathBuf>,
) -> Arc<SessionTree> {
    let limits = app.config.sessions.clone();
    let tree = SessionTree::new(documents.clone(), runtime.clone(), limits, reserved);
    let tree = tree.with_own_places(own_places(&app.config.confinement));
    Arc::new(tree.with_trust(trust.clone()))
}

/// What runs may begin besides themselves.
pub(crate) fn subagents(app: &App, tree: &Arc<SessionTree>) -> Arc<Subagents> {
    Subagents::new(tree.clone(), executor_file::settings(&app.config))
}

/// Where the runs of a directory are kept.
pub(crate) fn store(app: &App, running: &Running, workspace: &Path) -> Outcome<RunStore> {
    let runtime = running.stack.runtime();
    let name = runtime.token();
    let mut owner = if app.config.reliability.store.kind == StoreKind::Memory {
        Owner::alone(&*name)
    } else {
        Owner::announced(&app.state_dir, &*name).map_err(|error| {
            let dir = app.state_dir.display();
            Failure::failed(format!("{dir} can not be written: {error}"))
        })?
    };
    // The stack could not have been made without it.
    let workspace = workspace.canonicalize().unwrap_or_default();
    // Runs are where records are: a machine that goes on with one has to know its calls.
    let (documents, clock) = match &running.shared {
        Some(shared) => {
            let clock = records::clock_of(shared, &runtime.clock);
            owner = owner.leased(shared.clone(), clock.clone());
            (shared.clone() as Arc<dyn DocumentStore>, clock)
        }
        None => (running.documents.clone(), runtime.clock.clone()),
    };
    Ok(
        RunStore::new(documents, clock, owner, workspace.display().to_string())
            // Leases and expiry are the store's; how long a run has worked is this machine's.
            .with_loop_clock(runtime.clock.clone()),
    )
}

/// The keys of clients: from the environment, and from the file. Who names a place for keys wants that
/// one is asked for: a place without any would let everybody in.
pub(crate) fn keys(config: &ExecutorConfig) -> Outcome<Vec<Token>> {
    let mut keys = match &config.keys_file {
        Some(file) => keys_in_file(file)?,
        None => Vec::new(),
    };
    // Also an empty one: `KEYS=$UNSET` is meant to hold some.
    if let Some(listed) = environment::as_set(environment::API_KEYS) {
        keys.extend(keys_listed(&listed)?);
    }
    Ok(keys)
}

fn keys_in_file(file: &str) -> Outcome<Vec<Token>> {
    let wrong = |error: TokenError| Failure::usage(error.to_string());
    let keys = Token::read_all(&expand(file)).map_err(wrong)?;
    if keys.is_empty() {
        let why = format!("executor.keysFile: there is no key in {file}, so nobody would need one");
        return Err(Failure::usage(why).hint(
            "Write one a line (`openssl rand -hex 32` makes one), or leave executor.keysFile out.",
        ));
    }
    Ok(keys)
}

fn keys_listed(listed: &str) -> Outcome<Vec<Token>> {
    let name = environment::API_KEYS;
    let wrong = |error| Failure::usage(format!("{name}: {error}"));
    let texts = listed.split(',').map(str::trim).filter(|it| !it.is_empty());
    let keys = texts.map(|text| Token::chosen(text).map_err(wrong));
    let keys: Vec<Token> = keys.collect::<Outcome<_>>()?;
    if keys.is_empty() {
        let why = format!("{name} is set and holds no key, so nobody would need one");
        return Err(Failure::usage(why).hint(format!(
            "Set it to one or more keys, separated by commas, or unset {name}."
        )));
    }
    Ok(keys)
}

//! From configuration to a stack that answers calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::envelope::NAME_BYTES_MAX;
use holdfast_contract::{Channel, Clock, SystemClock, SystemEntropy, Tool};
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::config::StoreKind;
use holdfast_reliability::guard::attribution_log::AttributionLog;
use holdfast_reliability::hooks::command::ObservingCommand;
use holdfast_reliability::hooks::{Hooks, Phase};
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::journal::JournalObserver;
use holdfast_reliability::observe::log::{JsonLog, LineSink, WriterSink};
use holdfast_reliability::observe::metrics::Metrics;
use holdfast_reliability::observe::queued::QueuedSink;
use holdfast_reliability::observe::{Observer, Observers};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryDocumentStore, MemoryLimits};
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_reliability::store::unavailable::UnavailableStore;
use holdfast_toolbox::approval::Approvals;
use holdfast_toolbox::audit::AuditLog;
use holdfast_toolbox::permit::Permissions;
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_toolbox::token::{APPROVER_TOKEN_FILE, Token};
use holdfast_toolbox::trust::TrustBook;

use crate::args::GlobalArgs;
use crate::config::{Config, LOG_AUTO, expand, state_dir, user_file};
use crate::executor;
use crate::fail::{Failure, Outcome};
use crate::records::{self, Held, Shared};
use crate::running::{Running, mains, own_places};
use crate::secrets;
use crate::server_terminal::{Prints, ServerTerminal};
use crate::telemetry::Traces;
use crate::terminal::TerminalChannel;
use crate::waiting::WaitWatch;
use crate::{logfile, loud};

/// Everything a command may need.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) state_dir: PathBuf,
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What is allowed now: the stack, the approvals and the tools share it.
    permissions: Arc<Permissions>,
    log: String,
    prints: Prints,
}

impl App {
    /// Reads the configuration.
    pub(crate) fn new(global: &GlobalArgs) -> Outcome<Self> {
        let config = Config::load(global.config.as_deref())?;
        let log = global
            .log
            .clone()
            .unwrap_or_else(|| config.observability.log.clone());
        Ok(Self {
            state_dir: state_dir(global.state.as_deref())?,
            config_file: global.config.clone().or_else(user_file),
            permissions: Arc::new(config.permissions.clone().into()),
            config,
            clock: Arc::new(SystemClock),
            log,
            prints: if global.json {
                Prints::Json
            } else {
                Prints::Words
            },
        })
    }

    /// The same for a server: with `--json` its log events go to standard error, unless somebody
    /// said where they go.
    pub(crate) fn new_for_server(global: &GlobalArgs) -> Outcome<Self> {
        let mut app = Self::new(global)?;
        if global.json && app.log == LOG_AUTO {
            "stderr".clone_into(&mut app.log);
        }
        Ok(app)
    }

    /// The demo's own configuration and state.
    pub(crate) fn for_demo(config: Config, state_dir: PathBuf) -> Self {
        Self {
            permissions: Arc::new(config.permissions.clone().into()),
            config,
            state_dir,
            config_file: None,
            clock: Arc::new(SystemClock),
            log: "off".to_owned(),
            prints: Prints::Words,
        }
    }

    /// Opens the durable state.
    pub(crate) fn open_state(&self) -> Result<Arc<SqliteState>, StoreError> {
        let store = &self.config.reliability.store;
        let options = SqliteOptions {
            keys_max: store.disk_keys_max,
            bytes_max: store.disk_bytes_max,
            ..SqliteOptions::default()
        };
        SqliteState::open(&self.state_dir, self.clock.clone(), options)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.config.tools_under(self.permissions.clone())
    }

    /// A stack with the base tools, working in `workspace`.
    pub(crate) fn stack(&self, workspace: &Path) -> Outcome<Running> {
        self.stack_with(workspace, self.tools())
    }

    /// The same for runs of a model, which may begin others.
    pub(crate) fn stack_for_runs(&self, workspace: &Path) -> Outcome<Running> {
        self.put_together(workspace, self.tools(), Life::Run, Observers::new())
    }

    /// A stack with these tools.
    pub(crate) fn stack_with(
        &self,
        workspace: &Path,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Outcome<Running> {
        self.put_together(workspace, tools, Life::OneCall, Observers::new())
    }

    /// A stack that lives long, with the base tools and one more observer.
    pub(crate) fn stack_for_server(
        &self,
        workspace: &Path,
        observer: Arc<dyn Observer>,
    ) -> Outcome<Running> {
        let observers = Observers::new().with(observer);
        self.put_together(workspace, self.tools(), Life::Long, observers)
    }

    fn put_together(
        &self,
        workspace: &Path,
        tools: Vec<Arc<dyn Tool>>,
        life: Life,
        observers: Observers,
    ) -> Outcome<Running> {
        let workspace = workspace.canonicalize().map_err(|error| {
            Failure::usage(format!(
                "the workspace {} can not be used: {error}",
                workspace.display()
            ))
        })?;
        let redactor = self.config.redactor();
        let metrics = Metrics::new();
        let waits = Arc::new(WaitWatch::new());
        let mut observers = observers.with(metrics.clone());
        if life != Life::Long {
            observers = observers.with(waits.clone());
        }
        let log = self.json_log()?.map(Arc::new);
        if let Some(log) = &log {
            observers = observers.with(log.clone());
        }
        let otlp = self.config.observability.otlp.as_ref();
        let traces = otlp
            .and_then(|otlp| Traces::start(otlp, redactor.clone(), metrics.clone(), log.clone()));
        if let Some(traces) = &traces {
            observers = observers.with(traces.observer());
        }
        let state = self.state_for_calls(life);
        let store_name = state.name();
        let shared = match &state {
            State::Shared(shared, _) => Some(shared.clone()),
            _ => None,
        };
        if let State::Open(state) | State::Shared(_, state) = &state {
            observers = observers.with(Arc::new(JournalObserver::new(
                state.clone(),
                self.clock.clone(),
                redactor.clone(),
            )));
        }
        let mut runtime = Runtime::new(self.clock.clone(), Arc::new(SystemEntropy), observers);
        runtime.redactor = secrets::redactor(self);
        let runtime = Arc::new(runtime);
        let documents = self.documents(&state);
        let common: Arc<dyn DocumentStore> = match &shared {
            Some(shared) => shared.clone(),
            None => documents.clone(),
        };
        let stores = self.stores(&runtime, state);
        let held = Held {
            common,
            local: documents.clone(),
        };
        let approvals = Arc::new(self.approvals(&held, runtime.clone()));
        let trust = Arc::new(self.trust_book(held.common.clone(), runtime.clone()));
        let (reserved, git) = (self.reserved(), self.git_keeper());
        // Sessions are where their runs are.
        let tree = executor::tree(self, &held.common, &runtime, &trust, reserved.clone());
        let subagents = (life != Life::OneCall).then(|| executor::subagents(self, &tree));
        let tools = match &subagents {
            Some(subagents) => tools.into_iter().chain(subagents.tools()).collect(),
            None => tools,
        };
        let own = own_places(&self.config.confinement);
        let mains = mains(workspace, self.channel(life)?, self.memory(), reserved, own);
        let stack = ToolStack::new(Parts {
            stores: stores.clone(),
            tools,
            reliability: self.config.reliability.clone(),
            guard: self.config.guard.clone(),
            permissions: self.permissions.clone(),
            hooks: self.hooks(),
            attribution: Some(Arc::new(self.attribution(redactor.clone())?)),
            sessions: match &subagents {
                Some(subagents) => subagents.sessions(mains),
                None => mains,
            },
            output: self.config.output.clone(),
            approvals: Some(approvals.clone()),
            trust: Some(trust),
            tree: Some(tree),
            undo: self.undo_for_calls(),
            git: Some(git.clone()),
            runtime,
        })
        .map_err(|error| Failure::usage(error.to_string()))?;
        for found in stack.registry().iter() {
            metrics.know(&stack.policies().get(found.tool.name()));
        }
        Ok(Running {
            stack: Arc::new(stack),
            metrics,
            approvals,
            documents,
            stores,
            store_name,
            shared,
            waits,
            traces,
            subagents,
            git,
        })
    }

    /// Where the people are.
    fn channel(&self, life: Life) -> Outcome<Arc<dyn Channel>> {
        #[cfg(feature = "web")]
        if let Some(channel) = crate::web::channel(&self.config)? {
            return Ok(channel);
        }
        Ok(match life {
            Life::OneCall | Life::Run => Arc::new(TerminalChannel::new()),
            Life::Long => {
                let redactor = secrets::redactor(self);
                let server = ServerTerminal::new(redactor, self.prints, self.clock.clone());
                Arc::new(server.map_err(|error| loud::unwritable(&error))?)
            }
        })
    }

    /// Approvals are kept in the state also while the reliability layers are switched off: who may
    /// do what is never switched off. Without a state nothing can be approved.
    fn documents(&self, state: &State) -> Arc<dyn DocumentStore> {
        let opened = match state {
            State::Open(state) | State::Shared(_, state) => return state.clone(),
            State::Unavailable(error) => Err(error.clone()),
            State::Memory if self.config.reliability.store.kind == StoreKind::Memory => {
                return Arc::new(MemoryDocumentStore::new(self.clock.clone()));
            }
            State::Memory => self.open_state(),
        };
        match opened {
            Ok(state) => state,
            Err(error) => Arc::new(UnavailableStore::new(error)),
        }
    }

    /// The approvals in a store, audited in the state directory.
    pub(crate) fn approvals(&self, held: &Held, runtime: Arc<Runtime>) -> Approvals {
        let audit = Arc::new(self.audit_log(held.local.clone()));
        let permissions = self.permissions.clone();
        let approvals = Approvals::new(held.common.clone(), Some(audit), runtime, permissions);
        // Without the token there are no codes, and a reply on a channel counts for nothing.
        let path = self.state_dir.join(APPROVER_TOKEN_FILE);
        #[cfg(feature = "web")]
        if self.config.channel.is_some() {
            // Whoever reads the prompt there needs one; what can not be made is missed below.
            let _ = Token::read_or_make(&path);
        }
        match Token::read(&path) {
            Ok(token) => approvals.with_codes(token),
            Err(_) => approvals,
        }
    }

    /// What sessions have read, in a store.
    pub(crate) fn trust_book(
        &self,
        documents: Arc<dyn DocumentStore>,
        runtime: Arc<Runtime>,
    ) -> TrustBook {
        TrustBook::new(self.config.trust.clone(), documents, runtime)
    }

    /// The audit log of this state.
    pub(crate) fn audit_log(&self, documents: Arc<dyn DocumentStore>) -> AuditLog {
        let redactor = secrets::redactor(self);
        AuditLog::new(&self.state_dir, documents, self.clock.clone(), redactor)
    }

    /// What no tool may enter, as written and by its real name: the state and who may call what.
    pub(crate) fn reserved(&self) -> Vec<PathBuf> {
        let server = &self.config.server;
        let keys = &self.config.executor.keys_file;
        let tokens = [&server.token_file, &server.admin_token_file, keys];
        let files = tokens.into_iter().flatten().map(|file| expand(file));
        let all = files.chain(self.config_file.clone());
        let mut names = Vec::new();
        for path in std::iter::once(self.state_dir.clone()).chain(all) {
            let written = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
            let real = path.canonicalize().unwrap_or_else(|_| written.clone());
            names.extend([real, written]);
        }
        names.dedup();
        names
    }

    /// The state behind calls. What can not be opened is no reason not to answer: the layers refuse
    /// what needs it. With the kill switch thrown a single call does not need it; a server may be
    /// switched back.
    fn state_for_calls(&self, life: Life) -> State {
        let reliability = &self.config.reliability;
        let not_needed = !reliability.enabled && life != Life::Long;
        if reliability.store.kind == StoreKind::Memory || not_needed {
            return State::Memory;
        }
        let opened = self.open_state().and_then(|state| {
            Ok(match reliability.store.kind {
                StoreKind::Redis => State::Shared(self.open_shared()?, state),
                StoreKind::Sqlite | StoreKind::Memory => State::Open(state),
            })
        });
        opened.unwrap_or_else(State::Unavailable)
    }

    fn stores(&self, runtime: &Arc<Runtime>, state: State) -> Stores {
        let store = &self.config.reliability.store;
        let limits = MemoryLimits {
            keys_max: store.memory_keys_max,
            bytes_max: store.memory_bytes_max,
        };
        match state {
            State::Memory => Stores::memory(runtime, limits),
            State::Unavailable(error) => {
                let gone = Arc::new(UnavailableStore::new(error));
                Stores {
                    dedupe: DedupeStores::single(gone.clone()),
                    breakers: gone.clone(),
                    turns: gone,
                }
            }
            State::Shared(shared, state) => {
                records::attach(&shared, runtime, &self.config.reliability);
                Stores {
                    dedupe: DedupeStores {
                        durable: shared.clone(),
                        memory: Arc::new(MemoryDedupeStore::new(self.clock.clone(), limits)),
                    },
                    breakers: shared,
                    turns: state,
                }
            }
            State::Open(state) => Stores {
                dedupe: DedupeStores {
                    durable: state.clone(),
                    memory: Arc::new(MemoryDedupeStore::new(self.clock.clone(), limits)),
                },
                breakers: state.clone(),
                turns: state,
            },
        }
    }

    fn hooks(&self) -> Hooks {
        let config = &self.config.hooks;
        let mut hooks = Hooks::default();
        for hook in &config.admit {
            hooks.admit.push(Arc::new(hook.clone()));
        }
        for (list, phase) in [
            (&config.before, Phase::Before),
            (&config.after, Phase::After),
        ] {
            for hook in list {
                hooks
                    .observe
                    .push(Arc::new(ObservingCommand::new(hook.clone(), phase)));
            }
        }
        hooks
    }

    fn attribution(
        &self,
        redactor: holdfast_contract::redact::Redactor,
    ) -> Outcome<AttributionLog> {
        AttributionLog::start(expand(&self.config.guard.log_path), redactor).map_err(|error| {
            Failure::failed(format!("the attribution log can not be started: {error}"))
        })
    }

    /// Whether log events go where people read what a server says.
    pub(crate) fn logs_to_stderr(&self) -> bool {
        self.log == "stderr"
    }

    /// Whether nobody said where log events go.
    pub(crate) fn logs_by_default(&self) -> bool {
        self.log == LOG_AUTO
    }

    fn json_log(&self) -> Outcome<Option<JsonLog>> {
        let (clock, redactor) = (self.clock.clone(), self.config.redactor());
        let sink = self.log_sink()?;
        Ok(sink.map(|sink| JsonLog::new(sink, clock, redactor)))
    }

    /// Where log events go, if anywhere.
    pub(crate) fn log_sink(&self) -> Outcome<Option<Arc<dyn LineSink>>> {
        match self.log.as_str() {
            "off" | LOG_AUTO => Ok(None),
            "stderr" => {
                // It may be a pipe that nobody reads.
                let sink = QueuedSink::start(std::io::stderr()).map_err(|error| {
                    Failure::failed(format!("the log can not be started: {error}"))
                })?;
                Ok(Some(Arc::new(sink)))
            }
            path => Ok(Some(Arc::new(WriterSink::new(logfile::open(path)?)))),
        }
    }
}

/// Where calls keep what has to be remembered.
enum State {
    Memory,
    Open(Arc<SqliteState>),
    /// Records and breakers shared by many machines; turns and the journal stay on this one.
    Shared(Arc<Shared>, Arc<SqliteState>),
    Unavailable(StoreError),
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Open(_) => "sqlite",
            Self::Shared(..) => "redis",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

/// How long a stack is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    OneCall,
    /// A run at the terminal, and those that it begins.
    Run,
    Long,
}

/// A runtime for one command.
pub(crate) fn runtime() -> Outcome<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("the runtime can not be started: {error}")))
}

/// Keys and turns of one directory are not those of another: "hello.txt was created" is only true
/// where it was.
pub(crate) fn workspace_id(workspace: &Path) -> Option<String> {
    let path = workspace.canonicalize().ok()?.display().to_string();
    Some(if path.len() <= NAME_BYTES_MAX {
        path
    } else {
        Digest::of(path.as_bytes()).to_string()
    })
}

//! The one way of a tool call.
//!
//! Every caller (the command line, an HTTP client, the agent loop, a library user) enters here and
//! takes the same way. `assemble` is that way as a list.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, pending, select};
use holdfast_contract::{Reason, SessionContext, Tool, ToolCallEnvelope, ToolResultEnvelope};
use holdfast_reliability::breaker::{Breaker, BreakerStore};
use holdfast_reliability::call::{Call, Entry, Resumes, Starts};
use holdfast_reliability::config::{ConfigProblem, ReliabilityConfig};
use holdfast_reliability::deadline::{self, Deadline};
use holdfast_reliability::exchange::Exchanged;
use holdfast_reliability::execute::Execute;
use holdfast_reliability::guard::attribution_log::AttributionLog;
use holdfast_reliability::guard::{Guard, GuardConfig, GuardStore, Receipt};
use holdfast_reliability::hooks::{AdmitHooks, Hooks, ObservingHooks};
use holdfast_reliability::idempotency::{DedupeStores, Idempotency};
use holdfast_reliability::observe::Event;
use holdfast_reliability::policy::{Modes, PolicyTable};
use holdfast_reliability::rate::RateLimited;
use holdfast_reliability::retry::{Retry, RetryBudget};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::service::{Service, Stack};
use holdfast_reliability::store::memory::{
    MemoryBreakerStore, MemoryDedupeStore, MemoryGuardStore, MemoryLimits,
};
use holdfast_reliability::timeout::AttemptTimeout;
use holdfast_undo::UndoStore;

use crate::approval::{Approval, Approvals, Approve};
use crate::git::{GitKeeper, KeepGit};
use crate::limit_output::{OutputConfig, limit_output};
use crate::malformed::malformed;
use crate::permit::{PermissionConfig, Permissions, Permit, could_run};
use crate::registry::{RegisterError, Registry};
use crate::resolve::Resolve;
use crate::session::SessionTree;
use crate::trust::{GUESSED, TrustBook, Vouch, is_concern};
use crate::undo::KeepUndo;
use crate::validate::Validate;

/// Where the stack keeps what it has to remember.
#[derive(Clone)]
pub struct Stores {
    /// Records of intents.
    pub dedupe: DedupeStores,
    /// Circuit breakers.
    pub breakers: Arc<dyn BreakerStore>,
    /// Turns of the loop guard.
    pub turns: Arc<dyn GuardStore>,
}

impl Stores {
    /// Everything in this process's memory.
    pub fn memory(runtime: &Runtime, limits: MemoryLimits) -> Self {
        Self {
            dedupe: DedupeStores::single(Arc::new(MemoryDedupeStore::new(
                runtime.clock.clone(),
                limits,
            ))),
            breakers: Arc::new(MemoryBreakerStore::new(runtime.clock.clone())),
            turns: Arc::new(MemoryGuardStore::new(runtime.clock.clone())),
        }
    }
}

/// Gives each call the rights of its session.
pub type Sessions = Arc<dyn Fn(&ToolCallEnvelope) -> Arc<SessionContext> + Send + Sync>;

/// Everything a stack is made of.
pub struct Parts {
    /// Time, randomness, switches, observers.
    pub runtime: Arc<Runtime>,
    /// Where things are kept.
    pub stores: Stores,
    /// The tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Settings of the reliability layers.
    pub reliability: ReliabilityConfig,
    /// Settings of the loop guard.
    pub guard: GuardConfig,
    /// What is allowed; shared with the approvals and with the tools that have a say in it.
    pub permissions: Arc<Permissions>,
    /// Hooks.
    pub hooks: Hooks,
    /// The loop guard's attribution log.
    pub attribution: Option<Arc<AttributionLog>>,
    /// Rights by session.
    pub sessions: Sessions,
    /// How large an answer may be.
    pub output: OutputConfig,
    /// Asks people; without it what needs their answer is denied.
    pub approvals: Option<Arc<Approvals>>,
    /// Knows what sessions have read; without it provenance, manifests and signals are off.
    pub trust: Option<Arc<TrustBook>>,
    /// Knows which Main sessions people have cancelled; without it none is.
    pub tree: Option<Arc<SessionTree>>,
    /// Keeps what workspaces were before calls; without it nothing can be undone.
    pub undo: Option<Arc<UndoStore>>,
    /// Sets aside what git would run later; without it nothing is.
    pub git: Option<Arc<GitKeeper>>,
}

impl Parts {
    /// Parts with the default settings and no tools yet.
    pub fn new(runtime: Arc<Runtime>, stores: Stores, sessions: Sessions) -> Self {
        Self {
            runtime,
            stores,
            tools: Vec::new(),
            reliability: ReliabilityConfig::default(),
            guard: GuardConfig::default(),
            permissions: Arc::default(),
            hooks: Hooks::default(),
            attribution: None,
            sessions,
            output: OutputConfig::default(),
            approvals: None,
            trust: None,
            tree: None,
            undo: None,
            git: None,
        }
    }

    /// The same with these tools besides.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }
}

/// Why a stack can not be put together.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A tool can not be registered.
    #[error(transparent)]
    Tool(#[from] RegisterError),
    /// A setting can not be.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<ConfigProblem>),
}

/// The stack, ready for calls.
pub struct ToolStack {
    registry: Arc<Registry>,
    policies: PolicyTable,
    permissions: Arc<Permissions>,
    guard: Arc<Exchanged<GuardConfig>>,
    runtime: Arc<Runtime>,
    sessions: Sessions,
    output: OutputConfig,
    trust: Option<Arc<TrustBook>>,
    approvals: Option<Arc<Approvals>>,
    turns: Arc<dyn GuardStore>,
    service: Box<Layers>,
}

/// An answer on its way out.
pub struct Answered {
    /// The answer.
    pub result: ToolResultEnvelope,
    /// Says that the answer has arrived, where that matters: until it does, the record of the call
    /// answers for it, whatever the turn changes meanwhile.
    pub receipt: Option<Receipt>,
}

impl Answered {
    /// Whoever called has it.
    async fn handed_over(self) -> ToolResultEnvelope {
        if let Some(receipt) = self.receipt {
            receipt.delivered().await;
        }
        self.result
    }
}

/// The type of the list below, outermost first. Written out, so that a call is one future inside
/// its caller's and costs no allocation of its own.
type Layers = AdmitHooks<Deadline<Guard<Deadline<Resolve<Vouch<Permit<Validate<Inside>>>>>>>>;
type Inside = Idempotency<Approve<KeepUndo<KeepGit<Retry<Breaker<RateLimited<Observed>>>>>>>;
type Observed = ObservingHooks<AttemptTimeout<Execute>>;

/// The layers in their order, from the tool outwards, each with its reason.
fn assemble(
    parts: &Parts,
    registry: &Arc<Registry>,
    guard: &Arc<Exchanged<GuardConfig>>,
    retry_budget: RetryBudget,
) -> Layers {
    let runtime = || parts.runtime.clone();
    Stack::new(Execute::new(runtime()))
        // Each attempt has its own time; a tool that hangs must not use up the whole call's.
        .push(AttemptTimeout::new)
        // Hooks see what really runs, once per attempt.
        .push(|inner| ObservingHooks::new(inner, parts.hooks.clone()))
        // A place is taken by what really runs, so not by what an open breaker refuses.
        .push(|inner| RateLimited::new(inner, runtime()))
        // The breaker judges attempts and is asked before each one, so it sits inside retry.
        .push(|inner| Breaker::new(inner, parts.stores.breakers.clone(), runtime()))
        // One key covers all attempts, so retry sits inside idempotency.
        .push(|inner| Retry::new(inner, retry_budget, runtime()))
        // What git would run later is compared behind all attempts, so outside retry; and what is set
        // aside belongs to no point, so inside undo.
        .push(|inner| KeepGit::new(inner, parts.git.clone()))
        // Undo goes back behind all attempts, so outside retry; and only of a call that really runs.
        .push(|inner| KeepUndo::new(inner, parts.undo.clone()))
        // A person is asked about a call that is valid and not done already, so inside the claim;
        // once for all its attempts, so outside retry.
        .push(|inner| {
            let approvals = parts.approvals.clone();
            Approve::new(inner, approvals, parts.permissions.clone(), runtime())
        })
        // Only a valid and permitted call is worth a record.
        .push(|inner| Idempotency::new(inner, parts.stores.dedupe.clone(), runtime()))
        // Bad arguments are told to the model before anything is keyed.
        .push(|inner| Validate::new(inner, registry.clone()))
        // What is forbidden is not even looked at.
        .push(|inner| {
            let (permissions, tree) = (parts.permissions.clone(), parts.tree.clone());
            Permit::new(inner, permissions, tree, parts.undo.clone(), runtime())
        })
        // Whose words they are may ask for a person, so before Permit; and what comes back is looked
        // at also when it comes from a record.
        .push(|inner| Vouch::new(inner, parts.trust.clone(), registry, runtime()))
        // From here inwards the tool is known.
        .push(|inner| Resolve::new(inner, registry.clone()))
        // Cut off in here, so that the guard learns of it.
        .push(|inner| Deadline::new(inner, runtime()))
        // The guard sees cached, invalid, forbidden and unknown calls too: models loop on those.
        .push(|inner| {
            Guard::new(
                inner,
                guard.clone(),
                parts.stores.turns.clone(),
                parts.attribution.clone(),
                runtime(),
            )
        })
        // The caller's own clock wins over every clock inside.
        .push(|inner| Deadline::backstop(inner, runtime()))
        // Hooks may change the arguments, so they come before all that depends on them.
        .push(|inner| AdmitHooks::new(inner, parts.hooks.clone(), runtime()))
        .build()
}

impl ToolStack {
    /// Puts a stack together.
    pub fn new(parts: Parts) -> Result<Self, BuildError> {
        let problems = parts.reliability.problems();
        if !problems.is_empty() {
            return Err(BuildError::Config(problems));
        }
        check_guard(&parts.guard).map_err(BuildError::Config)?;
        let unknown = parts
            .reliability
            .policy_for_unknown()
            .map_err(BuildError::Config)?;
        let policies = PolicyTable::new(unknown);
        let mut registry = Registry::new();
        for tool in &parts.tools {
            policies.insert(
                parts
                    .reliability
                    .policy_for(&**tool)
                    .map_err(BuildError::Config)?,
            );
            registry.register(tool.clone())?;
        }
        parts.reliability.apply_switches(&parts.runtime.switches);
        let registry = Arc::new(registry);
        let retry_budget = parts
            .reliability
            .retry_budget()
            .map_err(BuildError::Config)?;
        let guard = Arc::new(Exchanged::new(parts.guard.clone()));
        let service = Box::new(assemble(&parts, &registry, &guard, retry_budget));
        Ok(Self {
            registry,
            policies,
            permissions: parts.permissions,
            guard,
            runtime: parts.runtime,
            sessions: parts.sessions,
            output: parts.output,
            trust: parts.trust,
            approvals: parts.approvals,
            turns: parts.stores.turns,
            service,
        })
    }

    /// Exchanges the policies of tools, what is allowed and the guard's limits, for calls that begin
    /// from now on. When one of them can not be, nothing is exchanged. Of the switches, those are turned whose setting is another
    /// than before; the others stay as operators turned them.
    pub fn exchange(
        &self,
        reliability: &ReliabilityConfig,
        permissions: PermissionConfig,
        guard: GuardConfig,
    ) -> Result<(), Vec<ConfigProblem>> {
        check_guard(&guard)?;
        let policies = self
            .registry
            .iter()
            .map(|it| reliability.policy_for(&*it.tool));
        for policy in policies.collect::<Result<Vec<_>, _>>()? {
            self.policies.insert(policy);
        }
        reliability.apply_switches(&self.runtime.switches);
        self.permissions.exchange(permissions);
        self.guard.exchange(guard);
        Ok(())
    }

    /// What the switches come to for its tools.
    pub fn modes(&self) -> Modes {
        self.policies.modes(&self.runtime.switches)
    }

    /// The tools.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The tools that this session could use, as things are: what is denied whatever its arguments
    /// is not among them, what a person can approve is.
    pub fn offered(&self, session: &SessionContext) -> Registry {
        let config = self.permissions.now();
        let asks_people = self.approvals.is_some();
        self.registry
            .only(|tool| could_run(&config, tool, session, asks_people))
    }

    /// Time, randomness, switches, observers.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// What a session may do, as its calls are given it.
    pub fn session(&self, key: &str, agent: Option<&str>) -> Arc<SessionContext> {
        let nothing = serde_json::Map::new();
        let mut envelope = ToolCallEnvelope::new("session", "session", nothing, key, "session");
        envelope.target.agent_id = agent.map(str::to_owned);
        (self.sessions)(&envelope)
    }

    /// What sessions have read, when that is kept.
    pub fn trust(&self) -> Option<&Arc<TrustBook>> {
        self.trust.as_ref()
    }

    /// What waits for people, where there are any.
    pub fn approvals(&self) -> Option<&Arc<Approvals>> {
        self.approvals.as_ref()
    }

    /// The policies of the tools.
    pub fn policies(&self) -> &PolicyTable {
        &self.policies
    }

    /// Answers a call that was read from outside.
    pub async fn call_bytes(&self, envelope: &[u8]) -> ToolResultEnvelope {
        self.call_bytes_until(envelope, pending()).await
    }

    /// Answers a call.
    pub async fn call(&self, envelope: ToolCallEnvelope) -> ToolResultEnvelope {
        self.call_until(envelope, pending()).await
    }

    /// As [`Self::call_bytes`], with a way to cancel it as in [`Self::call_until`].
    pub async fn call_bytes_until(
        &self,
        envelope: &[u8],
        cancelled: impl Future<Output = ()>,
    ) -> ToolResultEnvelope {
        match ToolCallEnvelope::parse(envelope) {
            Ok(envelope) => {
                let answered = self.go(self.admitted(envelope), cancelled).await;
                answered.handed_over().await
            }
            Err(error) => malformed(&error, &self.runtime.redactor),
        }
    }

    /// As [`Self::call`], until `cancelled` is ready. Then what is going on is dropped, which leaves
    /// the record in a defined state and ends a running command, and the answer says whether the
    /// effect may have happened.
    pub async fn call_until(
        &self,
        envelope: ToolCallEnvelope,
        cancelled: impl Future<Output = ()>,
    ) -> ToolResultEnvelope {
        let answered = self.answer_until(envelope, cancelled).await;
        answered.handed_over().await
    }

    /// As [`Self::call_until`], for a door whose answer can be lost on its way: it says by the receipt
    /// that the answer has arrived.
    pub async fn answer_until(
        &self,
        envelope: ToolCallEnvelope,
        cancelled: impl Future<Output = ()>,
    ) -> Answered {
        match envelope.check() {
            Ok(()) => self.go(self.admitted(envelope), cancelled).await,
            Err(error) => Answered {
                result: malformed(&error, &self.runtime.redactor),
                receipt: None,
            },
        }
    }

    /// Answers a call that was read from a model's prose: a person is asked whether it was meant.
    pub async fn call_guessed(&self, envelope: ToolCallEnvelope) -> ToolResultEnvelope {
        if let Err(error) = envelope.check() {
            return malformed(&error, &self.runtime.redactor);
        }
        let mut call = self.admitted(envelope);
        let text = "the model wished for it in prose, so it may be meant otherwise";
        let reason = Reason::new(GUESSED, &*call.envelope.tool_name, text);
        call.concerns.push(reason);
        self.go(call, pending()).await.handed_over().await
    }

    /// Answers a call that was captured when it asked for approval and whose process is gone. It is
    /// not admitted a second time: what was approved is what the hooks made of it then.
    pub async fn call_resumed(
        &self,
        approval: &Approval,
        starts: Arc<dyn Starts>,
        cancelled: impl Future<Output = ()>,
    ) -> ToolResultEnvelope {
        let captured = &approval.request;
        let mut envelope = captured.envelope.clone();
        envelope.control.deadline_at_ms = None;
        let mut call = self.admitted(envelope);
        call.entry = Entry::Resumed;
        call.resumes = Some(Resumes {
            approval: approval.id.clone(),
            starts,
        });
        call.hook_key.clone_from(&captured.hook_key);
        // What spoke against it when it asked is what the person answers, also when it is over by now.
        let asked = captured.reasons.iter();
        let concerns = asked.filter(|reason| is_concern(&reason.code));
        call.concerns = concerns.cloned().collect();
        // Its caller is gone, so the answer has arrived nowhere.
        self.go(call, cancelled).await.result
    }

    fn admitted(&self, mut envelope: ToolCallEnvelope) -> Call {
        // Policies, the guard and hooks know a tool by its own name.
        if let Some(found) = self.registry.resolve(&envelope.tool_name)
            && envelope.tool_name != found.tool.name()
        {
            found.tool.name().clone_into(&mut envelope.tool_name);
        }
        let policy = self.policies.get(&envelope.tool_name);
        let modes = self.runtime.switches.modes_for(&policy);
        let session = (self.sessions)(&envelope);
        let now_ms = self.runtime.clock.now_ms();
        Call::new(envelope, policy, modes, session, now_ms)
    }

    async fn go(&self, mut call: Call, cancelled: impl Future<Output = ()>) -> Answered {
        self.runtime.tell(&Event::Start { call: &call });
        let cancelled = pin!(cancelled);
        let answered = match select(pin!(self.service.call(&mut call)), cancelled).await {
            Either::Left((reply, _)) => Some(reply),
            Either::Right(_) => None,
        };
        let reply = answered.unwrap_or_else(|| deadline::cancelled(&call));
        let mut result = call.answer(reply, &self.runtime.redactor);
        limit_output(&mut result, &self.output);
        self.runtime.tell(&Event::End {
            call: &call,
            result: &result,
        });
        let receipt = Receipt::of(&call, &self.turns, &self.runtime);
        Answered { result, receipt }
    }
}

fn check_guard(guard: &GuardConfig) -> Result<(), Vec<ConfigProblem>> {
    guard.validate().map_err(|problem| {
        let path = format!("guard.{}", problem.field);
        vec![ConfigProblem::new(path, problem.reason)]
    })
}

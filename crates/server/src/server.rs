//! What all requests share.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use holdfast_contract::ToolCallEnvelope;
use holdfast_reliability::observe::http::HttpMetrics;
use holdfast_reliability::observe::metrics::Metrics;
use holdfast_reliability::store::StoreResult;
use holdfast_toolbox::approval::Approvals;
use holdfast_toolbox::audit::AuditLog;
use holdfast_toolbox::stack::{Answered, Stores, ToolStack};
use holdfast_toolbox::tools::peer::{self, Peer as Origin};
use holdfast_undo::UndoStore;
use http::StatusCode;
use http::header::{CONNECTION, HeaderValue, ORIGIN};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;
use tower_service::Service as _;

use crate::access::{Access, Gate, Reach, Tokens};
use crate::body::{Bounds, Held, Room, read_json};
use crate::config::Settings;
use crate::executor::{Executor, ExecutorParts, ModelLimits};
use crate::front::Front;
use crate::health::{Health, TroubleWatch};
use crate::respond::Refusal;
use crate::routes;
use crate::token::Token;

/// Everything a server is made of.
pub struct Parts {
    /// Answers the calls.
    pub stack: Arc<ToolStack>,
    /// The stores behind the stack, for admin and health.
    pub stores: Stores,
    /// What kind of store it is, in a word for people.
    pub store_name: String,
    /// What the stack counts.
    pub metrics: Arc<Metrics>,
    /// The settings.
    pub settings: Settings,
    /// The tokens.
    pub tokens: Tokens,
    /// Where admin actions are written down.
    pub audit: Arc<AuditLog>,
    /// What waits for people.
    pub approvals: Arc<Approvals>,
    /// Notes store trouble; an observer of the stack.
    pub trouble: Arc<TroubleWatch>,
    /// The workspace of calls that name none.
    pub workspace_id: Option<String>,
    /// Where tools work, by its real name.
    pub workspace: PathBuf,
    /// What the workspace was before calls, where that is kept.
    pub undo: Option<Arc<UndoStore>>,
    /// The model and its runs, where one was configured.
    pub executor: Option<ExecutorParts>,
}

/// How far the server is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It takes connections.
    Serving,
    /// It takes no more; calls in flight go on.
    Draining,
    /// Calls in flight are cancelled and say so.
    Cancelling,
    /// Whatever is still there is dropped.
    Gone,
}

/// What all requests share.
pub struct Server {
    pub(crate) stack: Arc<ToolStack>,
    pub(crate) stores: Stores,
    pub(crate) store_name: String,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) http: HttpMetrics,
    pub(crate) settings: Settings,
    pub(crate) gate: Gate,
    pub(crate) health: Health,
    pub(crate) audit: Arc<AuditLog>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) undo: Option<Arc<UndoStore>>,
    pub(crate) executor: Option<Arc<Executor>>,
    pub(crate) started_at_ms: u64,
    pub(crate) stage: watch::Sender<Stage>,
    /// Requests that are not answered yet, and calls that were entered again.
    pub(crate) requests: AtomicUsize,
    /// The requests for approval of the latter.
    pub(crate) entered: Mutex<BTreeSet<String>>,
    front: Front,
    calls: Arc<Semaphore>,
    /// Of calls that were entered again. Others may hold theirs while they wait for one of these.
    resumed_calls: Arc<Semaphore>,
    bodies: Room,
    /// Of any body; can be exchanged.
    bounds: RwLock<Bounds>,
    workspace_id: Option<String>,
    pub(crate) workspace: PathBuf,
}

impl Server {
    /// Puts a server together; [`crate::serve()`] lets it listen.
    pub fn new(parts: Parts) -> Arc<Self> {
        let settings = parts.settings;
        let reach = if settings.is_local() {
            Reach::Local
        } else {
            Reach::Network
        };
        Arc::new(Self {
            front: Front {
                hosts: settings.hosts.clone(),
                origins: settings.origins.clone(),
            },
            gate: Gate::new(parts.tokens, settings.wrong_tokens_max, reach),
            health: Health::new(parts.stores.dedupe.clone(), parts.trouble),
            calls: Arc::new(Semaphore::new(settings.calls_max)),
            resumed_calls: Arc::new(Semaphore::new(settings.calls_max)),
            bodies: Room::default(),
            bounds: RwLock::new(settings.bounds()),
            started_at_ms: parts.stack.runtime().clock.now_ms(),
            stage: watch::Sender::new(Stage::Serving),
            requests: AtomicUsize::new(0),
            entered: Mutex::default(),
            http: HttpMetrics::default(),
            stack: parts.stack,
            stores: parts.stores,
            store_name: parts.store_name,
            metrics: parts.metrics,
            audit: parts.audit,
            approvals: parts.approvals,
            undo: parts.undo,
            executor: parts.executor.map(Executor::new).map(Arc::new),
            workspace_id: parts.workspace_id,
            workspace: parts.workspace,
            settings,
        })
    }

    /// Exchanges what can be exchanged while it serves: the bounds of bodies, the keys of clients and, where there is a
    /// model, the models with their servers and how often a client may ask. Requests that are being worked
    /// on keep what they began with.
    pub fn exchange(&self, settings: &Settings, clients: Vec<Token>, model: Option<ModelLimits>) {
        *self.bounds.write() = settings.bounds();
        self.gate.exchange_clients(clients);
        if let (Some(executor), Some(model)) = (&self.executor, model) {
            executor.exchange(model);
        }
    }

    /// Whether there is a model to ask.
    pub fn has_model(&self) -> bool {
        self.executor.is_some()
    }

    /// Whether the request may use a route of this access.
    pub(crate) fn admit(&self, access: Access, request: &Request) -> Result<(), Refusal> {
        // Without an address nobody could be told apart, so nobody is trusted with one.
        let Some(Peer(peer)) = request.extensions().get::<Peer>() else {
            return Err(Refusal::invalid("The peer is not known"));
        };
        self.gate.check(access, request.headers(), peer.ip())
    }

    /// Refuses what a command sent, whatever token it has found: it speaks for nobody. A request
    /// that came over no connection came from this process.
    pub(crate) fn admit_no_command(
        request: &Request,
    ) -> impl Future<Output = Result<(), Refusal>> + use<> {
        let peer = request.extensions().get().map(|Peer(peer)| *peer);
        let taken = request.extensions().get().map(|Taken(local)| *local);
        async move {
            match (peer, taken) {
                (Some(peer), Some(local)) => not_a_command(peer, local).await,
                _ => Ok(()),
            }
        }
    }

    /// Writes a refusal and counts it.
    pub(crate) fn refuse(&self, refusal: Refusal) -> Response {
        self.http.count_refused(refusal.kind);
        refusal.into_response()
    }

    /// Takes one of the places for calls; given back when it is dropped. Taken before the body is
    /// read, so that bodies in memory are bounded too.
    pub(crate) fn begin_call(self: &Arc<Self>) -> Result<CallSlot, Refusal> {
        let Ok(permit) = self.calls.clone().try_acquire_owned() else {
            return Err(Refusal::busy("Too many tool calls at once"));
        };
        Ok(CallSlot::new(self, permit))
    }

    /// The same for a call that was entered again, and that nobody stands in line for: it waits for
    /// its place.
    pub(crate) async fn wait_for_place(self: &Arc<Self>) -> Option<CallSlot> {
        // Nobody closes the places.
        let permit = self.resumed_calls.clone().acquire_owned().await.ok()?;
        Some(CallSlot::new(self, permit))
    }

    /// Reads a JSON body that may be this large.
    pub(crate) async fn read_json(
        &self,
        request: Request,
        bytes_max: usize,
    ) -> Result<Held, Refusal> {
        let own = *self.bounds.read();
        let bounds = Bounds {
            bytes_max: bytes_max.min(own.bytes_max),
            ..own
        };
        read_json(request, bounds, &self.bodies).await
    }

    /// Answers a call. A client that goes away drops this future, and with it the call; a server
    /// that has to end cancels it. Both leave its record in a defined state.
    pub(crate) async fn call(&self, mut envelope: ToolCallEnvelope) -> Answered {
        let target = &mut envelope.target;
        if target.workspace_id.is_none() {
            // Keys and turns of one directory are not those of another.
            target.workspace_id.clone_from(&self.workspace_id);
        }
        let cancelled = self.has_come_to(Stage::Cancelling);
        // The stack is one large future. In a box of its own it is not moved from hand to hand, and
        // requests that never call a tool do not carry its room.
        Box::pin(self.stack.answer_until(envelope, cancelled)).await
    }

    /// Goes on with the model's runs that were left unfinished; says with how many.
    pub async fn resume_runs(&self) -> StoreResult<usize> {
        match &self.executor {
            Some(executor) => executor.resume_runs().await,
            None => Ok(0),
        }
    }

    /// Lets go of the model's runs, as they were last kept.
    pub(crate) async fn leave_runs(&self) {
        if let Some(executor) = &self.executor {
            executor.runs.leave().await;
        }
    }

    /// Ready when the server is that far on its way out.
    pub(crate) fn has_come_to(&self, far: Stage) -> impl Future<Output = ()> + use<> {
        let mut stage = self.stage.subscribe();
        async move {
            // The sender lives as long as the server, which whoever waits for this holds.
            let _ = stage.wait_for(|stage| *stage >= far).await;
        }
    }

    /// Whether it is ending, and begins nothing new.
    pub(crate) fn is_ending(&self) -> bool {
        *self.stage.borrow() >= Stage::Draining
    }

    /// Places for calls that are taken.
    pub(crate) fn calls_in_flight(&self) -> usize {
        self.settings.calls_max - self.calls.available_permits()
    }
}

/// Looks at the process behind a connection.
async fn not_a_command(peer: SocketAddr, local: Option<SocketAddr>) -> Result<(), Refusal> {
    let asked = spawn_blocking(move || local.map(|local| peer::of(peer, local)));
    let message = match asked.await {
        Ok(Some(Origin::Other | Origin::Elsewhere)) => return Ok(()),
        Ok(Some(Origin::Command)) => "This is not answered by a command that a tool started",
        Ok(Some(Origin::Unknown) | None) | Err(_) => {
            "The process that asks could not be found, and may be a command; keep the connection \
             open until the answer, or use the command line"
        }
    };
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "forbidden_process",
        message,
    ))
}

/// A place for one call.
pub(crate) struct CallSlot {
    server: Arc<Server>,
    _permit: OwnedSemaphorePermit,
}

impl CallSlot {
    fn new(server: &Arc<Server>, permit: OwnedSemaphorePermit) -> Self {
        server.http.calls_in_flight.inc();
        Self {
            server: server.clone(),
            _permit: permit,
        }
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.server.http.calls_in_flight.dec();
    }
}

/// Who sent a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The address at which a connection was taken, if it could be asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken(pub(crate) Option<SocketAddr>);

/// Answers requests: the front door, and the routes behind it.
#[derive(Clone)]
pub struct Entrance {
    server: Arc<Server>,
    router: Router,
}

impl Entrance {
    /// Of this server.
    pub fn new(server: &Arc<Server>) -> Self {
        Self {
            server: server.clone(),
            router: routes::router(server),
        }
    }

    /// Answers one request.
    pub async fn respond(&mut self, request: Request, peer: SocketAddr) -> Response {
        let server = self.server.clone();
        let _counted = Counted::new(&server.requests);
        let route = routes::label(request.uri().path());
        let mut response = match server.front.check(&request) {
            Ok(()) => self.pass(request, peer).await,
            Err(refusal) => server.refuse(refusal),
        };
        if *server.stage.borrow() >= Stage::Draining {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        server.http.count_request(route, response.status().as_u16());
        response
    }

    /// A request that the front door let in.
    async fn pass(&mut self, mut request: Request, peer: SocketAddr) -> Response {
        let origin = request.headers().get(ORIGIN).cloned();
        let mut response = if let Some(response) = self.server.front.preflight(&request) {
            response
        } else {
            request.extensions_mut().insert(Peer(peer));
            match self.router.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        };
        self.server.front.mark(origin, &mut response);
        response
    }
}

/// Counts something for as long as it lives.
pub(crate) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    pub(crate) fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

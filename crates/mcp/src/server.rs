//! The server: registry, settings and runtime state shared by all transports.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::audit::AuditLog;
use crate::builder::ServerBuilder;
use crate::completion::Completer;
use crate::context::Context;
use crate::discovery::{self, DiscoveryReport, LastScan, Module};
use crate::error::{Error, RegistrationError};
use crate::event::Event;
use crate::limits::Limits;
use crate::message::{Id, Params, Response};
use crate::metrics::Metrics;
use crate::permissions::AllowList;
use crate::prompt::Prompt;
use crate::registry::{RegistrationOutcome, Registry};
use crate::request_state::StateKey;
use crate::resource::{Resource, ResourceTemplate};
use crate::resource_lister::ResourceLister;
use crate::session::Session;
use crate::state_keys::StateKeys;
use crate::tasks::{RunningTask, TaskLocks, TaskStore};
use crate::tool::Tool;
use crate::transport::{BodyMemory, RateLimiters, RateUsage};
use crate::trust::{Caller, Effect};

/// An MCP server for any number of transports. Cheap to clone; all clones refer to the same server.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    pub(crate) server_meta: Map<String, Value>,
    /// `own_meta` as JSON: every modern result includes it.
    pub(crate) server_meta_json: String,
    pub(crate) limits: Limits,
    pub(crate) registry: ArcSwap<Registry>,
    /// Serializes writers of `registry`; readers never block.
    pub(crate) registry_lock: Mutex<()>,
    pub(crate) modules: Vec<Module>,
    pub(crate) discovery_ttl: Duration,
    pub(crate) last_scan: Mutex<Option<LastScan>>,
    pub(crate) resources: ArcSwap<IndexMap<String, Resource>>,
    pub(crate) templates: Vec<ResourceTemplate>,
    pub(crate) lister: Option<ResourceLister>,
    pub(crate) prompts: ArcSwap<IndexMap<String, Prompt>>,
    pub(crate) completers: HashMap<(String, String), Completer>,
    pub(crate) methods: HashMap<String, CustomMethod>,
    pub(crate) capabilities: Map<String, Value>,
    pub(crate) suppress_legacy_changes: bool,
    pub(crate) confirm_destructive: AtomicBool,
    pub(crate) listed_tools: AllowList,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) pending_responses: Mutex<HashMap<Id, PendingResponse>>,
    pub(crate) tasks: Arc<dyn TaskStore>,
    pub(crate) running_tasks: Mutex<HashMap<Arc<str>, Arc<RunningTask>>>,
    /// Serializes task state changes, so that a final state stays final.
    pub(crate) task_locks: TaskLocks,
    /// Makes reading and publishing a task state one step.
    pub(crate) task_publish_locks: TaskLocks,
    /// All executing requests, including those of disconnected clients.
    pub(crate) admission: Admission,
    pub(crate) body_memory: BodyMemory,
    pub(crate) metrics: Metrics,
    pub(crate) audit: AuditLog,
    pub(crate) state_keys: Arc<StateKeys>,
    pub(crate) rate_limiters: RateLimiters,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    pub(crate) inspection: Option<Inspection>,
    pub(crate) health: Option<HealthCheck>,
    pub(crate) draining: CancellationToken,
    pub(crate) drain_deadline: OnceLock<Instant>,
    pub(crate) stop_now: CancellationToken,
    pub(crate) never_cancelled: CancellationToken,
    pub(crate) listeners: Arc<Semaphore>,
    /// All tasks spawned for this server, so that shutdown can wait for them.
    pub(crate) background: TaskTracker,
}

/// A custom method, such as `models/list`.
#[derive(Clone)]
pub(crate) struct CustomMethod {
    pub(crate) effect: Effect,
    /// The equivalent tool; a caller without permission for it must not bypass that through the method.
    pub(crate) tool: Option<String>,
    pub(crate) run: Arc<MethodHandler>,
}

pub(crate) type MethodHandler = dyn Fn(Context, Params) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync;

/// Adds members to `GET /health`; `status` becomes `degraded` when it reports an impaired component (T-41).
pub(crate) type HealthCheck = Arc<dyn Fn() -> Health + Send + Sync>;

/// Adds members to the `inspect_server` result, such as queue lengths.
pub(crate) type Inspection = Arc<dyn Fn() -> Map<String, Value> + Send + Sync>;

/// Component health as reported by the program.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Impaired components, with the reason.
    pub impaired: Vec<(String, String)>,
    /// Additional members of the reply.
    pub members: Map<String, Value>,
}

/// A pending request to a client, and the caller it was sent to.
pub(crate) struct PendingResponse {
    caller: Arc<str>,
    sender: oneshot::Sender<Response>,
}

impl Server {
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into(), version.into())
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn version(&self) -> &str {
        &self.0.version
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub fn audit(&self) -> &AuditLog {
        &self.0.audit
    }

    /// Whether destructive calls of verified callers need confirmation by the user at the client.
    pub(crate) fn confirms_destructive(&self) -> bool {
        self.0.confirm_destructive.load(Ordering::Relaxed)
    }

    /// Changes that setting at runtime.
    pub fn set_confirm_destructive(&self, ask: bool) {
        self.0.confirm_destructive.store(ask, Ordering::Relaxed);
    }

    /// Sets the key shared by all instances at runtime; see [`ServerBuilder::state_key`].
    ///
    /// State issued earlier under the instance key stays valid on this instance. A further call replaces the shared
    /// key.
    pub fn set_shared_state_key(&self, key: StateKey) {
        self.0.state_keys.set_shared(key);
    }

    /// Rate-limit usage not yet reported to other instances; includes callers with no new usage but a bucket that is
    /// not full.
    ///
    /// A program with a shared store calls this periodically, adds up the usage of all instances, and
    /// [settles](RateUsage::apply_total) each entry. Do not call it concurrently: unsettled entries are returned again by the
    /// next call.
    pub fn unreported_rate_usage(&self) -> Vec<RateUsage> {
        self.0.rate_limiters.unreported_usage()
    }

    pub fn uptime(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// Wall-clock start time.
    pub fn started_at(&self) -> SystemTime {
        self.0.started_at
    }

    /// The current tools.
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry.load_full()
    }

    /// The current tools without incrementing the reference count: for a short lookup, not for storage.
    pub(crate) fn tools(&self) -> arc_swap::Guard<Arc<Registry>> {
        self.0.registry.load()
    }

    /// Whether `tools/list` contains a tool.
    pub(crate) fn lists(&self, tool: &str) -> bool {
        self.0.listed_tools.allows(tool)
    }

    /// Adds a tool at runtime and notifies clients.
    pub fn register(&self, tool: Tool) -> Result<RegistrationOutcome, RegistrationError> {
        let _turn = lock(&self.0.registry_lock);
        let (next, what) = self.0.registry.load().with(tool)?;
        if what == RegistrationOutcome::Added {
            self.0.registry.store(Arc::new(next));
            self.publish(Event::ToolsChanged);
        }
        Ok(what)
    }

    /// Removes a tool at runtime and notifies clients.
    pub fn unregister(&self, name: &str) {
        let _turn = lock(&self.0.registry_lock);
        let before = self.0.registry.load();
        let next = before.without(name);
        if next.len() != before.len() {
            self.0.registry.store(Arc::new(next));
            self.publish(Event::ToolsChanged);
        }
    }

    /// Scans the modules for tools, unless the last scan is fresh and `force` is false (M-68).
    pub fn discover(&self, force: bool) -> DiscoveryReport {
        let mut last = lock(&self.0.last_scan);
        if let Some(scan) = last.as_ref().filter(|scan| !force && scan.is_fresh(self.0.discovery_ttl)) {
            return scan.report.clone();
        }
        let report = discovery::scan(&self.0.modules, |tool| self.register(tool).map(drop));
        *last = Some(LastScan { at: Instant::now(), report: report.clone() });
        report
    }

    pub fn add_resource(&self, resource: Resource) {
        let _turn = lock(&self.0.registry_lock);
        let mut next = IndexMap::clone(&self.0.resources.load());
        next.insert(resource.uri.clone(), resource);
        self.0.resources.store(Arc::new(next));
        self.publish(Event::ResourcesChanged);
    }

    pub fn remove_resource(&self, uri: &str) {
        let _turn = lock(&self.0.registry_lock);
        let mut next = IndexMap::clone(&self.0.resources.load());
        if next.shift_remove(uri).is_some() {
            self.0.resources.store(Arc::new(next));
            self.publish(Event::ResourcesChanged);
        }
    }

    pub fn add_prompt(&self, prompt: Prompt) {
        let _turn = lock(&self.0.registry_lock);
        let mut next = IndexMap::clone(&self.0.prompts.load());
        next.insert(prompt.name.clone(), prompt);
        self.0.prompts.store(Arc::new(next));
        self.publish(Event::PromptsChanged);
    }

    /// Sends the event to every subscribed stream.
    pub fn publish(&self, event: Event) {
        // An error means that there are no subscribers.
        let _ = self.0.events.send(event);
    }

    /// The notification for a legacy stream, if the event concerns it and its kind is advertised.
    pub(crate) fn legacy_notification(&self, event: &Event, session: &Session, caller: &str) -> Option<Vec<u8>> {
        let is_suppressed = self.0.suppress_legacy_changes
            && matches!(event, Event::ResourcesChanged | Event::ResourceUpdated(_) | Event::PromptsChanged);
        if is_suppressed { None } else { event.for_legacy(&session.subscriptions(), caller) }
    }

    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    pub(crate) fn resources(&self) -> Arc<IndexMap<String, Resource>> {
        self.0.resources.load_full()
    }

    /// Number of fixed resources plus dynamically listed ones (M-48).
    pub(crate) fn resources_count(&self) -> usize {
        self.0.resources.load().len() + self.0.lister.as_ref().map_or(0, ResourceLister::count)
    }

    pub(crate) fn prompts(&self) -> Arc<IndexMap<String, Prompt>> {
        self.0.prompts.load_full()
    }

    /// The `_meta` of every modern result: server info.
    pub(crate) fn server_meta(&self) -> &Map<String, Value> {
        &self.0.server_meta
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Merges the program's declared capabilities into `all`, combining the members of objects.
    pub(crate) fn merge_declared_capabilities(&self, all: &mut Map<String, Value>) {
        for (name, value) in &self.0.capabilities {
            match (all.get_mut(name), value) {
                (Some(Value::Object(ours)), Value::Object(theirs)) => ours.extend(theirs.clone()),
                _ => drop(all.insert(name.clone(), value.clone())),
            }
        }
    }

    /// Starts draining: in-flight work continues, new requests are rejected.
    pub fn drain(&self) {
        self.0.drain_deadline.get_or_init(|| Instant::now() + self.0.limits.shutdown_grace);
        self.0.draining.cancel();
    }

    /// Deadline of the drain, common to everything that waits for it.
    pub fn drain_deadline(&self) -> tokio::time::Instant {
        let ends = self.0.drain_deadline.get().copied();
        ends.unwrap_or_else(|| Instant::now() + self.0.limits.shutdown_grace).into()
    }

    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled()
    }

    /// Stops everything immediately.
    pub fn stop_now(&self) {
        self.drain();
        self.0.stop_now.cancel();
    }

    /// Completes when [`Server::stop_now`] was called.
    pub async fn stopped(&self) {
        self.0.stop_now.cancelled().await;
    }

    /// A token that is never cancelled, for requests without a closing connection.
    pub(crate) fn never_cancelled(&self) -> &CancellationToken {
        &self.0.never_cancelled
    }

    /// A permit for a `subscriptions/listen` stream.
    pub(crate) fn acquire_listener(&self) -> Result<OwnedSemaphorePermit, Error> {
        let most = self.0.limits.max_listeners;
        self.0.listeners.clone().try_acquire_owned().map_err(|_| {
            Error::RateLimited(format!(
                "too many open event streams (maximum {most}); close one and \
                retry"
            ))
        })
    }

    /// Runs work in the background; [`Server::finished`] waits for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.background.spawn(work);
    }

    /// Waits until all background work has ended. Call it after [`Server::drain`].
    pub async fn finished(&self) {
        self.0.background.close();
        self.0.background.wait().await;
    }

    pub(crate) fn task_store(&self) -> &dyn TaskStore {
        &*self.0.tasks
    }

    pub(crate) fn running_tasks(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<RunningTask>>> {
        lock(&self.0.running_tasks)
    }

    /// Creates an unguessable id for a request of ours, and registers a channel for its response.
    pub(crate) fn register_client_request(&self, caller: &Caller) -> (Id, oneshot::Receiver<Response>) {
        let id = Id::String(random_id().into());
        let (answer, receiver) = oneshot::channel();
        lock(&self.0.pending_responses)
            .insert(id.clone(), PendingResponse { caller: caller.identity.clone(), sender: answer });
        (id, receiver)
    }

    pub(crate) fn unregister_client_request(&self, id: &Id) {
        lock(&self.0.pending_responses).remove(id);
    }

    /// Delivers a client's response; drops it if it is not pending or was expected from another caller.
    pub(crate) fn deliver_response(&self, response: Response, caller: &Caller) {
        let Some(id) = &response.id else { return };
        let mut expected = lock(&self.0.pending_responses);
        if expected.get(id).is_some_and(|expected| expected.caller == caller.identity)
            && let Some(PendingResponse { sender: answer, .. }) = expected.remove(id)
        {
            let _ = answer.send(response);
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.0.name).field("version", &self.0.version).finish_non_exhaustive()
    }
}

/// 128 random bits, unguessable.
pub(crate) fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system provides random numbers");
    bytes
}

/// 128 random bits in hex, as an id.
pub(crate) fn random_id() -> String {
    use std::fmt::Write;
    random_bytes().iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Ignores poisoning: every critical section here replaces values in one step, so a panic leaves them consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

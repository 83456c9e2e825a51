//! Server builder: collects declarations and validates them in `build`.

use crate::admission::Admission;
use crate::audit::{AuditLog, AuditSink};
use crate::client::META_SERVER_INFO;
use crate::completion::Completer;
use crate::context::Context;
use crate::discovery::Module;
use crate::dispatch::PROTOCOL_METHODS;
use crate::error::{Error, RegistrationError};
use crate::limits::Limits;
use crate::message::Params;
use crate::metrics::Metrics;
use crate::permissions::AllowList;
use crate::prompt::Prompt;
use crate::registry::Registry;
use crate::request_state::StateKey;
use crate::resource::{Resource, ResourceTemplate};
use crate::resource_lister::ResourceLister;
use crate::server::{CustomMethod, Health, HealthCheck, Inner, Inspection, MethodHandler, Server};
use crate::state_keys::StateKeys;
use crate::tasks::{MemoryTaskStore, TaskLocks, TaskStore};
use crate::tool::{DEFAULT_CACHE_TTL, Tool};
use crate::transport::{BodyMemory, RateLimiters};
use crate::trust::Effect;
use arc_swap::ArcSwap;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Builds a server. Errors are stored until [`ServerBuilder::build`], so that declarations can be chained.
#[derive(Default)]
pub struct ServerBuilder {
    name: String,
    version: String,
    instructions: Option<String>,
    limits: Limits,
    tools: Vec<Result<Tool, RegistrationError>>,
    modules: Vec<Module>,
    discovery_ttl: Option<Duration>,
    resources: Vec<Resource>,
    templates: Vec<Result<ResourceTemplate, RegistrationError>>,
    lister: Option<ResourceLister>,
    prompts: Vec<Prompt>,
    completers: HashMap<(String, String), Completer>,
    methods: HashMap<String, CustomMethod>,
    capabilities: Map<String, Value>,
    suppress_legacy_changes: bool,
    confirm_destructive: bool,
    listed_tools: AllowList,
    tasks: Option<Arc<dyn TaskStore>>,
    state_key: Option<StateKey>,
    health: Option<HealthCheck>,
    audit_sink: Option<Arc<dyn AuditSink>>,
    inspection: Option<Inspection>,
}

/// Events buffered for a slow subscriber; when the buffer is full it loses the oldest.
const EVENT_CHANNEL_CAPACITY: usize = 256;

impl ServerBuilder {
    pub(crate) fn new(name: String, version: String) -> ServerBuilder {
        ServerBuilder { name, version, ..ServerBuilder::default() }
    }

    /// Guidance for models on how to use this server.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Accepts the result of `#[mcp_tool]` and [`ToolBuilder::run`](crate::ToolBuilder::run).
    pub fn tool(mut self, tool: Result<Tool, RegistrationError>) -> Self {
        self.tools.push(tool);
        self
    }

    /// A module that is scanned for tools now and whenever discovery is forced.
    pub fn module(mut self, module: Module) -> Self {
        self.modules.push(module);
        self
    }

    /// How long a discovery result stays fresh (default 300 s).
    pub fn discovery_ttl(mut self, ttl: Duration) -> Self {
        self.discovery_ttl = Some(ttl);
        self
    }

    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    pub fn resource_template(mut self, template: Result<ResourceTemplate, RegistrationError>) -> Self {
        self.templates.push(template);
        self
    }

    /// Lists dynamic resources after the fixed ones; clients read them through the templates.
    ///
    /// When the set changes, publish [`Event::ResourcesChanged`](crate::Event) to notify clients.
    pub fn resource_lister(mut self, lister: ResourceLister) -> Self {
        self.lister = Some(lister);
        self
    }

    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// Suggests values for an argument of a prompt (by name) or of a resource template (by its template text).
    pub fn completion(mut self, of: impl Into<String>, argument: impl Into<String>, completer: Completer) -> Self {
        self.completers.insert((of.into(), argument.into()), completer);
        self
    }

    /// Serves a custom, read-only method.
    pub fn method<F, Fut>(self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(Context, Params) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        self.add_method(name.into(), Effect::Reads, None, run)
    }

    /// Serves a custom method with the effect of a tool. The caller needs the trust level for that effect and a token
    /// that grants the tool.
    pub fn gated_method<F, Fut>(self, name: impl Into<String>, tool: &str, effect: Effect, run: F) -> Self
    where
        F: Fn(Context, Params) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        self.add_method(name.into(), effect, Some(tool.to_owned()), run)
    }

    fn add_method<F, Fut>(mut self, name: String, effect: Effect, tool: Option<String>, run: F) -> Self
    where
        F: Fn(Context, Params) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        let run = Arc::new(run);
        let run: Arc<MethodHandler> = Arc::new(move |context, params| {
            let run = run.clone();
            Box::pin(async move { run(context, params).await })
        });
        self.methods.insert(name, CustomMethod { effect, tool, run });
        self
    }

    /// Adds a capability to the advertised ones, merged into the server's.
    pub fn capability(mut self, name: impl Into<String>, value: Value) -> Self {
        self.capabilities.insert(name.into(), value);
        self
    }

    /// Advertises `subscribe:false` and `listChanged:false` for resources and prompts to legacy clients, and serves them
    /// neither: published contracts of programs require these values. Modern clients get both.
    pub fn suppress_legacy_changes(mut self) -> Self {
        self.suppress_legacy_changes = true;
        self
    }

    /// Elicits confirmation from the user at the client for destructive calls of verified callers instead of rejecting
    /// them.
    pub fn confirm_destructive(mut self, ask: bool) -> Self {
        self.confirm_destructive = ask;
        self
    }

    /// The tools in `tools/list`. The others can be called, and `list_registered_tools` shows them: a short list saves
    /// clients context, and is no restriction of callers.
    pub fn listed_tools(mut self, tools: AllowList) -> Self {
        self.listed_tools = tools;
        self
    }

    pub fn task_store(mut self, tasks: Arc<dyn TaskStore>) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Shared by instances behind one address, so that each can continue a call that another instance began, and resume
    /// its legacy sessions. [`Server::set_shared_state_key`] sets it later.
    pub fn state_key(mut self, key: StateKey) -> Self {
        self.state_key = Some(key);
        self
    }

    /// Component health reported by `GET /health`.
    pub fn health(mut self, check: impl Fn() -> Health + Send + Sync + 'static) -> Self {
        self.health = Some(Arc::new(check));
        self
    }

    /// Persistent destination for calls and events beyond the in-memory ring (M-98).
    pub fn audit_sink(mut self, sink: Arc<dyn AuditSink>) -> Self {
        self.audit_sink = Some(sink);
        self
    }

    /// Additional members for `inspect_server`, such as queue lengths.
    pub fn inspection(mut self, look: impl Fn() -> Map<String, Value> + Send + Sync + 'static) -> Self {
        self.inspection = Some(Arc::new(look));
        self
    }

    /// Validates all declarations and creates the server.
    pub fn build(mut self) -> Result<Server, RegistrationError> {
        self.limits = self.limits.normalized();
        let mut registry = Registry::default();
        for tool in self.tools {
            registry = registry.with(tool?)?.0;
        }
        // `completion/complete` is shared: programs may serve its generation form.
        let taken = |name: &&String| PROTOCOL_METHODS.contains(&name.as_str()) && *name != "completion/complete";
        if let Some(name) = self.methods.keys().find(taken) {
            return Err(RegistrationError::Duplicate { kind: "method", name: name.clone() });
        }
        let mut resources = IndexMap::new();
        for resource in self.resources {
            let uri = resource.uri.clone();
            if resources.insert(uri.clone(), resource).is_some() {
                return Err(RegistrationError::Duplicate { kind: "resource", name: uri });
            }
        }
        let mut prompts = IndexMap::new();
        for prompt in self.prompts {
            let name = prompt.name.clone();
            if prompts.insert(name.clone(), prompt).is_some() {
                return Err(RegistrationError::Duplicate { kind: "prompt", name });
            }
        }
        let who = json!({ "name": self.name, "version": self.version });
        let own_meta = Map::from_iter([(META_SERVER_INFO.to_owned(), who)]);
        let metrics = Metrics::new(PROTOCOL_METHODS.into_iter().chain(self.methods.keys().map(String::as_str)));
        let server = Server(Arc::new(Inner {
            server_meta_json: serde_json::to_string(&own_meta).expect("a map of strings can be written"),
            server_meta: own_meta,
            name: self.name,
            version: self.version,
            instructions: self.instructions,
            registry: ArcSwap::from_pointee(registry),
            registry_lock: Mutex::default(),
            modules: self.modules,
            discovery_ttl: self.discovery_ttl.unwrap_or(DEFAULT_CACHE_TTL),
            last_scan: Mutex::default(),
            resources: ArcSwap::from_pointee(resources),
            templates: self.templates.into_iter().collect::<Result<_, _>>()?,
            lister: self.lister,
            prompts: ArcSwap::from_pointee(prompts),
            completers: self.completers,
            capabilities: self.capabilities,
            suppress_legacy_changes: self.suppress_legacy_changes,
            confirm_destructive: AtomicBool::new(self.confirm_destructive),
            listed_tools: self.listed_tools,
            events: broadcast::channel(EVENT_CHANNEL_CAPACITY).0,
            pending_responses: Mutex::default(),
            tasks: self.tasks.unwrap_or_else(|| Arc::new(MemoryTaskStore::new(self.limits.max_tasks))),
            running_tasks: Mutex::default(),
            task_locks: TaskLocks::default(),
            task_publish_locks: TaskLocks::default(),
            admission: Admission::new(&self.limits, &metrics),
            body_memory: BodyMemory::new(self.limits.max_body_memory),
            metrics,
            audit: AuditLog::new(self.limits.max_audit, self.audit_sink),
            methods: self.methods,
            state_keys: Arc::new(StateKeys::new(self.state_key)),
            rate_limiters: RateLimiters::default(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            inspection: self.inspection,
            health: self.health,
            draining: CancellationToken::new(),
            drain_deadline: OnceLock::new(),
            stop_now: CancellationToken::new(),
            never_cancelled: CancellationToken::new(),
            listeners: Arc::new(Semaphore::new(self.limits.max_listeners)),
            background: TaskTracker::new(),
            limits: self.limits,
        }));
        server.discover(false);
        Ok(server)
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("name", &self.name)
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

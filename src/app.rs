//! Composition root: builds a server from the settings.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{RateLimit, TrustedProxies};
use corbie_mcp::{AllowList, AuditSink, Health, Limits, RegistrationError, Server};
use serde_json::{Map, Value, json};

use crate::access::{Access, TokenFileError};
use crate::audit_log::AuditFile;
use crate::classify::taxonomy::Taxonomy;
use crate::classify::{self, Classification};
use crate::config::egress_policy::EgressPolicy;
use crate::config::{self, Config, ConfigError, Diagnostic, KeyPath, LoadedConfig};
use crate::console;
use crate::doctor;
use crate::external_classifier::{ExternalClassifier, State};
use crate::file_sync::FileSync;
use crate::inference::Inference;
use crate::knowledge::image_description::ImageDescriber;
use crate::knowledge::mcp_tasks::McpTaskStore;
use crate::knowledge::{self, Knowledge};
use crate::openai_api;
use crate::providers::http_client::HttpClient;
use crate::providers::registry::ProviderRegistry;
use crate::route::classifier::PromptClassifier;
use crate::route::{self, Router};
use crate::supervisor;
use crate::util::did_you_mean;
use crate::util::sanitize::without_folders;

/// Instructions for models, sent to clients in `initialize`.
const INSTRUCTIONS: &str = "corbie is a document knowledge base, a text classifier and an LLM router. Documents: \
`knowledge-search` finds passages, `knowledge-get` reads a document, `knowledge-ask` answers a question with \
citations, `knowledge-add` and `knowledge-import` add files. Classification: `classify_text`, `batch_categorize` and \
`list_categories`; `get_taxonomy`, `check_taxonomy` and `save_taxonomy` read, validate and replace the categories, \
`evaluate_categories` measures their accuracy. Language models: `chat_completion` sends a prompt to the best model for \
it, `explain_route` shows which model would be used, `list_models` and `list_providers` list models and providers. \
Call `list_registered_tools` to list all tools, `get_tool_schema` before using an unfamiliar tool, and \
`inspect_server` for the server's status.";

/// Maximum number of retained tasks of tools without their own store.
const MAX_TASKS: usize = 1000;

/// A server with its components.
#[derive(Debug)]
pub struct App {
    pub server: Server,
    pub classification: Classification,
    pub inference: Inference,
    pub router: Router,
    pub access: Access,
    /// `None` if disabled.
    pub knowledge: Option<Knowledge>,
    /// `None` if instances share no database.
    pub file_sync: Option<FileSync>,
    /// `None` if no audit file is configured.
    pub audit: Option<Arc<AuditFile>>,
}

/// Why the server cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// The taxonomy is invalid, or a setting names a category that it does not have.
    #[error(transparent)]
    Taxonomy(#[from] ConfigError),
    #[error("cannot write `audit.file` `{}`: {error}; create its folder, or use another path", .path.display())]
    Audit { path: PathBuf, error: io::Error },
    #[error("`providers.required` is set, but {0}; detected local servers do not count")]
    NoProvider(route::Error),
    /// An unreadable token file is fatal: guessing would admit or reject the wrong callers.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
}

/// Builds the server: everything is registered before any input is read.
pub fn build(config: &Config) -> Result<App, Error> {
    assemble(config, None)
}

/// The same for loaded settings, whose sources allow checking them again.
pub fn build_loaded(loaded: &LoadedConfig) -> Result<App, Error> {
    assemble(&loaded.config, Some(loaded))
}

fn assemble(config: &Config, loaded: Option<&LoadedConfig>) -> Result<App, Error> {
    // The semantic cache and then the classifier may embed the same query, and users repeat searches.
    let inference = match config.router.cache.semantic || config.knowledge.enabled {
        true => Inference::with_query_cache(config.inference.clone()),
        false => Inference::new(config.inference.clone()),
    };
    let classification = Classification::new(config.classification.clone(), inference.clone())?;
    let router = router(config, loaded, &classification)?;
    let knowledge = match config.knowledge.enabled {
        true => {
            let model = config.ocr.vision_model.clone();
            let describer = model.map(|model| ImageDescriber { client: Arc::new(router.clone()), model });
            let settings = config.knowledge.clone();
            Some(Knowledge::new(settings, &config.documents, &config.ocr, inference.clone(), describer))
        }
        false => None,
    };
    let shared_files = FileSync::from_config(config, knowledge.as_ref());
    if let Some(shared) = &shared_files {
        classification.apply_category_ids(shared.category_ids());
    }
    let audit = open_audit_file(config)?;
    let health = {
        let (shared_files, audit) = (shared_files.clone(), audit.clone());
        let (classification, router, knowledge) = (classification.clone(), router.clone(), knowledge.clone());
        let embedding = inference.clone();
        move || {
            let (mut members, impaired) = classification.health();
            let impaired = impaired.map(|why| ("classification".to_owned(), why));
            let external = router.external_classifier().and_then(|external| match external.state() {
                State::Down(error) => Some(("external_classifier".to_owned(), error.to_string())),
                State::Starting | State::Ready { .. } => None,
            });
            let providers = router.providers().all_failing().map(|why| ("providers".to_owned(), why));
            let knowledge = knowledge.as_ref().map(Knowledge::health_summary);
            if let Some(part) = &knowledge {
                members.insert("knowledge".into(), part.to_json());
            }
            let broken = knowledge.and_then(|part| part.impairment).map(|why| ("knowledge".to_owned(), why));
            let stuck = embedding.impairment().map(|why| ("embedding".to_owned(), why));
            let unaudited = audit.as_ref().and_then(|audit| audit.error());
            let unaudited = unaudited.map(|why| ("audit".to_owned(), format!("cannot write the audit log: {why}")));
            let begun_anew = supervisor::impairment().map(|why| ("background".to_owned(), why));
            let unshared = shared_files.as_ref().and_then(FileSync::impairment);
            let unshared = unshared.map(|why| ("shared_files".to_owned(), why));
            let impaired = impaired
                .into_iter()
                .chain(unshared)
                .chain(external)
                .chain(providers)
                .chain(broken)
                .chain(stuck)
                .chain(unaudited)
                .chain(begun_anew);
            // Callers of any trust level can read it, so it contains no paths.
            let impaired = impaired.map(|(part, why)| (part, without_folders(&why)));
            if let Some(Value::String(why)) = members.get_mut("taxonomy_refused") {
                *why = without_folders(why);
            }
            Health { members, impaired: impaired.collect() }
        }
    };
    let builder = Server::builder(&config.server.name, env!("CARGO_PKG_VERSION"))
        .instructions(INSTRUCTIONS)
        .limits(limits(config))
        .discovery_ttl(config.registry.cache_ttl.get())
        .suppress_legacy_changes()
        .listed_tools(config.server.tools.names().map_or(AllowList::All, AllowList::names))
        .confirm_destructive(config.trust.confirm_destructive)
        .health(health)
        .builtins();
    let around = classify::EditorContext {
        external_classifier: router.external_classifier().is_some(),
        required_categories: required_categories(config, loaded),
        publisher: shared_files.clone().map(|shared| Arc::new(shared) as Arc<dyn classify::TaxonomyPublisher>),
    };
    let builder = classify::tools::register(builder, &classification, around);
    let mut builder = route::tools::register(builder, &router);
    builder = builder.tool(doctor::tool::tool(doctor::tool::ServerContext {
        config: config.clone(),
        sources: loaded.map(|loaded| loaded.sources.clone()),
        inference: inference.clone(),
        classification: classification.clone(),
    }));
    if let Some(knowledge) = &knowledge {
        builder = knowledge::tools::register(builder, knowledge, Arc::new(router.clone()));
        builder = knowledge::resources::register(builder, knowledge);
        builder = builder.task_store(Arc::new(McpTaskStore::new(knowledge.clone(), MAX_TASKS)));
    }
    if let Some(audit) = &audit {
        builder = builder.audit_sink(audit.clone());
    }
    let (waiting, reading) = (inference.clone(), knowledge.clone());
    builder = builder.inspection(move || queue_lengths(&waiting, reading.as_ref()));
    let server = builder.build()?;
    if let Some(knowledge) = &knowledge {
        router.set_knowledge(knowledge.clone());
        knowledge.set_server(server.clone());
    }
    server.metrics().register(|registry| {
        inference.register(registry);
        classification.register(registry);
        router.register(registry);
        supervisor::register(registry);
        if let Some(knowledge) = &knowledge {
            knowledge.register(registry);
        }
    });
    let access = Access::new(config, router.providers().client())?;
    Ok(App { server, classification, inference, router, access, knowledge, file_sync: shared_files, audit })
}

/// Opens the audit file, if configured.
fn open_audit_file(config: &Config) -> Result<Option<Arc<AuditFile>>, Error> {
    let Some(path) = &config.audit.file else { return Ok(None) };
    let opened = AuditFile::open(path, &config.audit);
    opened.map(|file| Some(Arc::new(file))).map_err(|error| Error::Audit { path: path.clone(), error })
}

/// Queue lengths for `inspect_server`.
fn queue_lengths(inference: &Inference, knowledge: Option<&Knowledge>) -> Map<String, Value> {
    let (waiting, running) = knowledge.map_or((0, 0), Knowledge::task_counts);
    let queues = json!({
        "texts_waiting": inference.texts_waiting(),
        "tasks_waiting": waiting,
        "tasks_running": running,
    });
    Map::from_iter([("queues".to_owned(), queues)])
}

/// The router over the configured providers. It exists without providers too, because most of corbie needs none.
fn router(config: &Config, loaded: Option<&LoadedConfig>, classification: &Classification) -> Result<Router, Error> {
    let client = HttpClient::with_egress_policy(EgressPolicy::new(&config.network));
    let pool = ProviderRegistry::new(&config.providers, &config.defaults, client);
    if config.providers.required && pool.providers().is_empty() {
        return Err(Error::NoProvider(route::Error::NoProvider));
    }
    let policy = config.classification_policy();
    check_categories(config, loaded, classification)?;
    let external = config.external_classifier().ok().flatten();
    let external = external.map(|settings| ExternalClassifier::new(settings, pool.client().clone()));
    let own = policy.builtin.then(|| classification.clone());
    let classifier = PromptClassifier::new(external, own, policy.fallback);
    Ok(Router::new(config.router.clone(), policy.threshold, classifier, pool))
}

/// Checks that the categories named in the settings exist, and warns about settings without effect.
fn check_categories(
    config: &Config,
    loaded: Option<&LoadedConfig>,
    classification: &Classification,
) -> Result<(), Error> {
    let policies = config.router.policies.values();
    let of_policies = policies.flat_map(|policy| policy.models.keys().chain(policy.fallbacks.keys()));
    for name in of_policies.clone().filter(|name| config.router.restricted_categories.contains(*name)) {
        tracing::warn!(
            category = name,
            "ignoring the models that a policy sets for a category in `router.restricted_categories`"
        );
    }
    let published = classification.snapshot();
    let mistakes = unknown_categories(config, loaded, &published.taxonomy);
    if !mistakes.is_empty() {
        return Err(Error::Taxonomy(ConfigError::sorted(mistakes)));
    }
    if config.external_classifier().is_ok_and(|external| external.is_some()) {
        return Ok(());
    }
    let unknown = |name: &&String| !published.taxonomy.names().any(|known| known == name.as_str());
    let named = config.router.models.keys().chain(config.router.fallbacks.keys()).chain(of_policies);
    for name in named.filter(unknown) {
        tracing::warn!(category = name, "`router` refers to a category that is not in the taxonomy");
    }
    Ok(())
}

/// Settings that must not name an unknown category, and the category: a misspelt one would send prompts out that must
/// stay local, or leave uncertain prompts in the category that was guessed.
fn required_categories(config: &Config, loaded: Option<&LoadedConfig>) -> Vec<(&'static str, String)> {
    const FALLBACK: &str = "classification.fallback_category";
    let fallback = &config.classification.fallback_category;
    // The default need not exist: a taxonomy may have no category for everything else.
    let is_set = match loaded {
        Some(loaded) => loaded.is_set(FALLBACK),
        None => *fallback != config::classification::Classification::default().fallback_category,
    };
    let restricted = config.router.restricted_categories.iter();
    let restricted = restricted.map(|name| ("router.restricted_categories", name.clone()));
    restricted.chain(is_set.then(|| (FALLBACK, fallback.clone()))).collect()
}

/// Settings that name a category which the taxonomy does not have. The categories of an external server are not known
/// yet.
pub fn unknown_categories(config: &Config, loaded: Option<&LoadedConfig>, taxonomy: &Taxonomy) -> Vec<Diagnostic> {
    if config.external_classifier().is_ok_and(|external| external.is_some()) {
        return Vec::new();
    }
    let named = required_categories(config, loaded).into_iter();
    let unknown = named.filter(|(_, name)| !taxonomy.names().any(|known| known == name.as_str()));
    let mistake = |(key, name): (&str, String)| {
        let message = format!("names the category `{name}`, which the taxonomy does not have");
        let suggestion = did_you_mean::closest(&name, taxonomy.names()).map(str::to_owned);
        let located = loaded.and_then(|loaded| loaded.error_at(key, message.as_str()).diagnostics.pop());
        let plain = || Diagnostic { origin: None, path: KeyPath::dotted(key), message, suggestion: None };
        located.unwrap_or_else(plain).with_suggestion(suggestion)
    };
    unknown.map(mistake).collect()
}

/// Options of all HTTP listeners.
pub fn http_options(config: &Config, app: &App) -> Options {
    Options {
        routes: routes(app),
        error_formatter: Some(openai_api::render_rejection),
        pages: config.server.console.then_some(console::respond as _),
        allowed_hosts: config.server.allowed_hosts.iter().map(|host| host.as_str().to_owned()).collect(),
        allowed_origins: config.server.allowed_origins.iter().map(|origin| origin.as_str().to_owned()).collect(),
        trust_loopback: app.access.loopback.clone(),
        trust_remote: app.access.remote.clone(),
        global_rate_limit: config.server.global_rate_limit.and_then(enabled_rate_limit),
        trusted_proxies: trusted_proxies(config),
        forwarded_rate_limit: rate_limit(config, false),
        ..Options::default()
    }
}

/// Routes in addition to the MCP ones.
fn routes(app: &App) -> axum::Router {
    let routes = openai_api::routes(app.server.clone(), app.router.clone(), app.inference.clone());
    match &app.knowledge {
        Some(knowledge) => routes.merge(knowledge::upload::routes(knowledge.clone())),
        None => routes,
    }
}

fn trusted_proxies(config: &Config) -> TrustedProxies {
    let proxies = config.server.trusted_proxies.clone();
    match proxies.is_empty() {
        true => TrustedProxies::default(),
        false => TrustedProxies::new(move |address| proxies.iter().any(|block| block.contains(address))),
    }
}

/// Rate limit per caller of a listener.
pub fn rate_limit(config: &Config, loopback: bool) -> Option<RateLimit> {
    config.server.rate_limit(loopback).and_then(enabled_rate_limit)
}

/// The limit, unless it is disabled.
fn enabled_rate_limit(limit: config::server::RateLimit) -> Option<RateLimit> {
    (limit.per_second > 0).then_some(RateLimit { per_second: limit.per_second, burst: limit.burst() })
}

/// The configured limits.
pub fn limits(config: &Config) -> Limits {
    let (server, limits) = (&config.server, &config.server.limits);
    Limits {
        max_message_bytes: limits.max_message_bytes.bytes(),
        max_batch: limits.max_batch,
        max_json_depth: limits.max_json_depth,
        max_header_bytes: limits.max_header_bytes.bytes(),
        max_connections: limits.max_connections,
        max_connections_per_address: limits.max_connections_per_address,
        max_in_flight: limits.max_in_flight,
        max_concurrent: limits.max_concurrent,
        max_concurrent_per_caller: limits.max_concurrent_per_caller,
        max_queued: limits.max_queued,
        max_queue_wait: limits.max_queue_wait.get(),
        max_body_memory: limits.max_body_memory.bytes(),
        request_read_timeout: limits.request_read_timeout.get(),
        idle_timeout: limits.idle_timeout.get(),
        write_timeout: limits.write_timeout.get(),
        keep_alive_interval: limits.keep_alive_interval.get(),
        client_response_timeout: limits.client_response_timeout.get(),
        max_sessions: limits.max_sessions,
        session_idle_timeout: limits.session_idle_timeout.get(),
        page_size: limits.page_size,
        tool_timeout: server.tool_timeout_seconds.get(),
        tool_timeouts: tool_timeouts(config),
        shutdown_grace: server.shutdown_grace_seconds.get(),
        ..Limits::default()
    }
}

/// `completion/complete` gets the router's timeout unless configured otherwise, like the corresponding tool.
fn tool_timeouts(config: &Config) -> BTreeMap<String, Duration> {
    let own = config.router.timeout.get() + Duration::from_secs(1);
    let configured = config.server.tool_timeouts.iter().map(|(tool, limit)| (tool.clone(), limit.get()));
    [("completion/complete".to_owned(), own)].into_iter().chain(configured).collect()
}

//! Provider registry: configured providers and auto-detected local model servers.

use std::sync::Arc;
use std::time::{Duration, Instant as Clock, SystemTime};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

use super::http_client::HttpClient;
use super::provider::{Provider, ProviderConfigError};
use super::provider_selection::ProviderOffer;
use super::{Error, ModelInfo, ResponseHead, call};
use corbie_config::providers as config;
use corbie_config::providers::{Defaults, Providers};

/// All providers of the process. Cheap to clone; clones share state.
#[derive(Debug, Clone)]
pub struct ProviderRegistry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: ArcSwap<RegistrySnapshot>,
    client: HttpClient,
    /// Incremented whenever the set of known models changes.
    changes: watch::Sender<u64>,
    /// Serializes model list refreshes; concurrent callers share the result. Holds the time and outcome of the last
    /// refresh.
    last_refresh: tokio::sync::Mutex<Option<ListRefresh>>,
    /// Serializes detection of local servers.
    detecting: tokio::sync::Mutex<()>,
}

/// The providers and the settings that belong to them. They are replaced together, so that a request during a reload
/// never combines the providers of one version with the default model of another.
#[derive(Debug, Clone)]
pub struct RegistrySnapshot {
    /// In order of preference: the default provider, the remaining configured ones by name, then detected servers.
    providers: Arc<Vec<Arc<Provider>>>,
    settings: Arc<RegistrySettings>,
}

/// Settings that apply to the registry as a whole.
#[derive(Debug)]
struct RegistrySettings {
    detect_ports: Vec<u16>,
    default_provider: Option<String>,
    default_model: Option<String>,
}

/// Time of the last model list refresh, and whether every provider answered.
#[derive(Debug, Clone, Copy)]
struct ListRefresh {
    at: Clock,
    all_answered: bool,
}

/// Result of probing a local port.
enum PortProbe {
    Models(Vec<ModelInfo>),
    /// The port is closed or serves something else.
    NotAServer,
    /// A server accepts connections but timed out, so it cannot be identified.
    TimedOut,
}

/// Models of all providers, and the providers that failed to list theirs.
#[derive(Debug, Clone)]
pub struct Listing {
    pub models: Vec<ProviderModel>,
    pub failed: Vec<(String, Error)>,
}

/// A model and the provider that serves it.
#[derive(Debug, Clone)]
pub struct ProviderModel {
    pub provider: Arc<Provider>,
    pub model: ModelInfo,
}

/// How long a model list stays fresh.
pub const MODEL_LIST_TTL: Duration = Duration::from_secs(300);
/// Delay before providers that failed to list their models are queried again.
const FAILED_LIST_RETRY: Duration = Duration::from_secs(30);
/// Timeout for listing the models of all providers together.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Probe timeout. A server on this machine answers within this time.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

impl ProviderRegistry {
    /// Builds the configured providers with this client. Providers with invalid settings are logged and skipped.
    pub fn new(settings: &Providers, defaults: &Defaults, client: HttpClient) -> ProviderRegistry {
        let providers =
            build_configured(settings, defaults, |name, settings| Provider::new(name, settings, &client).map(Arc::new));
        ProviderRegistry(Arc::new(Inner {
            state: ArcSwap::from_pointee(RegistrySnapshot {
                providers: Arc::new(providers),
                settings: Arc::new(RegistrySettings::new(settings, defaults)),
            }),
            client,
            changes: watch::Sender::new(0),
            last_refresh: tokio::sync::Mutex::default(),
            detecting: tokio::sync::Mutex::default(),
        }))
    }

    /// Applies new settings at runtime. Providers for which `is_same` returns true keep their instance and
    /// state; in-flight requests finish on the provider they started with.
    pub async fn replace(&self, settings: &Providers, defaults: &Defaults, is_same: impl Fn(&str) -> bool) {
        let _detecting = self.0.detecting.lock().await;
        let mut last_listing = self.0.last_refresh.lock().await;
        let before = self.providers();
        let kept =
            |name: &str| before.iter().find(|provider| provider.name == name && !provider.detected && is_same(name));
        let mut now = build_configured(settings, defaults, |name, settings| match kept(name) {
            Some(provider) => Ok(provider.clone()),
            None => Provider::new(name, settings, &self.0.client).map(Arc::new),
        });
        let found = before.iter().filter(|provider| provider.detected);
        let found: Vec<_> = found.filter(|found| now.iter().all(|other| other.name != found.name)).cloned().collect();
        now.extend(found);
        self.0.state.store(Arc::new(RegistrySnapshot {
            providers: Arc::new(now),
            settings: Arc::new(RegistrySettings::new(settings, defaults)),
        }));
        // New providers list their models with the next refresh.
        if let Some(asked) = last_listing.as_mut() {
            asked.all_answered = false;
        }
        self.0.changes.send_modify(|count| *count += 1);
    }

    pub fn providers(&self) -> Arc<Vec<Arc<Provider>>> {
        self.0.state.load().providers.clone()
    }

    /// Providers and settings of one version.
    pub fn snapshot(&self) -> Arc<RegistrySnapshot> {
        self.0.state.load_full()
    }

    /// The client that uses no proxy.
    pub fn client(&self) -> &HttpClient {
        &self.0.client
    }

    pub fn default_provider(&self) -> Option<String> {
        self.0.state.load().default_provider().map(str::to_owned)
    }

    /// See [`RegistrySnapshot::default_model`].
    pub fn default_model(&self) -> Option<String> {
        self.0.state.load().default_model()
    }

    /// Reason why no provider is available, if providers exist and all of them fail.
    pub fn all_failing(&self) -> Option<String> {
        let providers = self.providers();
        let failing = |provider: &Arc<Provider>| provider.is_circuit_open() || provider.health().last_error.is_some();
        let last = providers.last().filter(|_| providers.iter().all(failing))?;
        let why = last.health().last_error.map_or_else(|| Error::CircuitOpen.to_string(), |error| error.to_string());
        Some(format!("all providers are failing; {}: {why}", last.name))
    }

    /// The models known so far, without contacting any provider.
    pub fn known_models(&self) -> Listing {
        let providers = self.providers();
        let offered = |provider: &Arc<Provider>| {
            let of = |model: &ModelInfo| ProviderModel { provider: provider.clone(), model: model.clone() };
            provider.models().iter().map(of).collect::<Vec<_>>()
        };
        let failed = |provider: &Arc<Provider>| Some((provider.name.clone(), provider.health().listing_error?));
        Listing {
            models: providers.iter().flat_map(offered).collect(),
            failed: providers.iter().filter_map(failed).collect(),
        }
    }

    /// Notifies subscribers whenever the set of known models changes.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Refreshes the model lists of all providers, unless the last refresh is younger than `fresh`. A provider that
    /// fails keeps its previous list and does not delay the rest.
    pub async fn refresh_models(&self, fresh: Duration) {
        let mut last = self.0.last_refresh.lock().await;
        let good_for = |asked: ListRefresh| if asked.all_answered { fresh } else { fresh.min(FAILED_LIST_RETRY) };
        if last.is_some_and(|asked| asked.at.elapsed() < good_for(asked)) {
            return;
        }
        self.detect_local_servers().await;
        let (providers, deadline) = (self.providers(), Instant::now() + LIST_TIMEOUT);
        let asked = providers.iter().filter(|provider| provider.is_remote());
        let answers = join_all(asked.map(|provider| async move {
            let result = call::list_models(provider, deadline).await;
            if let Err(error) = &result {
                tracing::warn!(provider = provider.name, %error, "cannot list models");
            }
            (result.is_ok(), provider.record_listing(result))
        }));
        let answers = answers.await;
        if answers.iter().any(|(_, changed)| *changed) {
            self.0.changes.send_modify(|count| *count += 1);
        }
        *last = Some(ListRefresh { at: Clock::now(), all_answered: answers.iter().all(|(answered, _)| *answered) });
    }

    /// Whether the models have been listed at least once.
    pub async fn was_listed(&self) -> bool {
        self.0.last_refresh.lock().await.is_some()
    }

    /// Probes the usual ports for local model servers.
    pub async fn detect_local_servers(&self) {
        let _detecting = self.0.detecting.lock().await;
        let before = self.providers();
        let configured: Vec<_> = before.iter().filter(|provider| !provider.detected).cloned().collect();
        let taken = |port: u16| configured.iter().any(|provider| is_local_port(provider.address().as_deref(), port));
        let settings = self.0.state.load().settings.clone();
        let ports = settings.detect_ports.iter().copied().filter(|port| !taken(*port));
        let answers = join_all(ports.map(|port| async move { (port, probe_port(port, &self.0.client).await) })).await;
        let mut now = configured.clone();
        let mut changed = false;
        for (port, found) in answers {
            let name = config::local_server_name(port);
            let known = before.iter().find(|provider| provider.name == name && provider.detected).cloned();
            match (known, found) {
                (Some(known), PortProbe::Models(models)) => {
                    changed |= known.record_listing(Ok(models));
                    now.push(known);
                }
                (Some(known), PortProbe::TimedOut) => now.push(known),
                (None, PortProbe::Models(models)) if !configured.iter().any(|provider| provider.name == name) => {
                    let base = base_url(port);
                    tracing::info!(provider = name, url = %base, models = models.len(), "detected local model server");
                    now.push(Arc::new(Provider::from_detection(&name, base, models, &self.0.client)));
                }
                _ => {}
            }
        }
        let names = |providers: &[Arc<Provider>]| providers.iter().map(|provider| provider.name.clone()).collect();
        let (was, is): (Vec<String>, Vec<String>) = (names(&before), names(&now));
        for gone in was.iter().filter(|name| !is.contains(name)) {
            tracing::info!(provider = gone, "local model server is no longer reachable");
        }
        if was != is {
            // Only `replace` changes the settings, and it waits for this detection.
            self.0.state.store(Arc::new(RegistrySnapshot { providers: Arc::new(now), settings: settings.clone() }));
            changed = true;
        }
        if changed {
            self.0.changes.send_modify(|count| *count += 1);
        }
    }
}

impl RegistrySnapshot {
    pub fn providers(&self) -> &[Arc<Provider>] {
        &self.providers
    }

    pub fn default_provider(&self) -> Option<&str> {
        self.settings.default_provider.as_deref()
    }

    /// Fallback model when the requested one is not served: the operator's default, or else the default model of the
    /// first provider that has one.
    pub fn default_model(&self) -> Option<String> {
        let of_provider = |provider: &Arc<Provider>| Some(format!("{}/{}", provider.name, provider.default_model()?));
        self.settings.default_model.clone().or_else(|| self.providers.iter().find_map(of_provider))
    }
}

impl RegistrySettings {
    fn new(settings: &Providers, defaults: &Defaults) -> RegistrySettings {
        RegistrySettings {
            detect_ports: settings.detect_ports.clone(),
            default_provider: defaults.provider.clone(),
            default_model: defaults.model.clone(),
        }
    }
}

/// Builds the providers named in the settings, default provider first.
fn build_configured(
    settings: &Providers,
    defaults: &Defaults,
    make: impl Fn(&str, &config::Provider) -> Result<Arc<Provider>, ProviderConfigError>,
) -> Vec<Arc<Provider>> {
    let mut providers = Vec::new();
    for (name, settings) in &settings.named {
        match make(name, settings) {
            Ok(provider) => providers.push(provider),
            Err(unusable) => tracing::warn!("provider `{name}` {unusable}; it is disabled"),
        }
    }
    if let Some(default) = &defaults.provider {
        // The sort is stable, so the remaining providers keep their order.
        providers.sort_by_key(|provider| provider.name != *default);
        let found_later = settings.detect_ports.iter().any(|port| config::local_server_name(*port) == *default);
        if providers.first().is_none_or(|first| first.name != *default) && !found_later {
            tracing::warn!("the default provider `{default}` is not configured; see `providers`");
        }
    }
    providers
}

/// The providers' offers, as input for provider selection.
pub fn offers(providers: &[Arc<Provider>]) -> Vec<ProviderOffer<'_>> {
    providers.iter().map(|provider| offer(provider)).collect()
}

fn offer(provider: &Provider) -> ProviderOffer<'_> {
    ProviderOffer {
        name: &provider.name,
        protocol: provider.protocol(),
        official: provider.kind.is_official(),
        detected: provider.detected,
        keys: provider.keys(),
        models: provider.served_models(),
    }
}

/// Probes this port for an OpenAI-compatible server, without sending a key. Accepts it only if it returns a list object
/// with at least one model, because many other programs listen on these ports.
async fn probe_port(port: u16, client: &HttpClient) -> PortProbe {
    let provider = Provider::from_detection("somebody", base_url(port), Vec::new(), client);
    let Some(request) = provider.models_request(None) else { return PortProbe::NotAServer };
    let answer = match client.send(request, Instant::now() + PROBE_TIMEOUT).await {
        Ok(answer) => answer,
        Err(Error::Timeout) => return PortProbe::TimedOut,
        Err(_) => return PortProbe::NotAServer,
    };
    let says_so = serde_json::from_slice::<Value>(&answer.body).is_ok_and(|body| body["object"] == "list");
    let head = ResponseHead { status: answer.status, headers: &answer.headers, received_at: SystemTime::now() };
    match provider.models_response(head, &answer.body) {
        Ok((models, _)) if says_so && !models.is_empty() => PortProbe::Models(models),
        _ => PortProbe::NotAServer,
    }
}

fn base_url(port: u16) -> Url {
    config::local_base_url(port).parse().expect("a number is a valid port")
}

/// Whether the address is this port on the local machine.
fn is_local_port(address: Option<&str>, port: u16) -> bool {
    let url = address.and_then(|address| Url::parse(address).ok());
    url.is_some_and(|url| {
        let host = url.host_str().unwrap_or_default();
        url.port_or_known_default() == Some(port) && matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    })
}

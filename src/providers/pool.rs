//! All providers that can be asked: those of the settings, and local servers that were found.

use std::sync::Arc;
use std::time::{Duration, Instant as Clock, SystemTime};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

use super::catalog::Offer;
use super::client::Client;
use super::provider::{Provider, Unusable};
use super::{Error, Head, ModelInfo, call};
use crate::config::providers as config;
use crate::config::providers::{Defaults, Providers};

/// The providers of one program. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// In the order they are asked: the default one, the others by their names, those that were found.
    providers: ArcSwap<Vec<Arc<Provider>>>,
    wishes: ArcSwap<Wishes>,
    client: Client,
    /// Counts up when the models that are known become others.
    changes: watch::Sender<u64>,
    /// One asks for lists at a time; the others take what it brings. It guards when that was last.
    listing: tokio::sync::Mutex<Option<Asked>>,
    /// One looks for local servers at a time.
    detecting: tokio::sync::Mutex<()>,
}

/// What the operator wants of all of them together.
#[derive(Debug)]
struct Wishes {
    detect_ports: Vec<u16>,
    default_provider: Option<String>,
    default_model: Option<String>,
}

/// When everybody was asked for their models, and whether everybody answered.
#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Clock,
    all_answered: bool,
}

/// What was found on a port.
enum Found {
    Models(Vec<ModelInfo>),
    /// Nobody is there, or somebody else.
    Nothing,
    /// Somebody is, and is too busy to say who.
    Silence,
}

/// The models of everybody, and who could not be asked.
#[derive(Debug, Clone)]
pub struct Listing {
    pub models: Vec<Offered>,
    pub failed: Vec<(String, Error)>,
}

/// A model, and whose it is.
#[derive(Debug, Clone)]
pub struct Offered {
    pub provider: Arc<Provider>,
    pub model: ModelInfo,
}

/// How long a list of models is good for.
pub const FRESH: Duration = Duration::from_secs(300);
/// How soon those are asked again who could not list theirs.
const AGAIN: Duration = Duration::from_secs(30);
/// How long everybody together may take to list their models.
const LISTING: Duration = Duration::from_secs(10);
/// A server on this machine answers at once, or is none.
const DETECTING: Duration = Duration::from_millis(500);

impl Pool {
    /// Those of the settings, asked with this client. Who cannot be asked is told about and left out.
    pub fn new(settings: &Providers, defaults: &Defaults, client: Client) -> Pool {
        let providers =
            configured(settings, defaults, |name, settings| Provider::new(name, settings, &client).map(Arc::new));
        Pool(Arc::new(Shared {
            providers: ArcSwap::from_pointee(providers),
            wishes: ArcSwap::from_pointee(Wishes::new(settings, defaults)),
            client,
            changes: watch::Sender::new(0),
            listing: tokio::sync::Mutex::default(),
            detecting: tokio::sync::Mutex::default(),
        }))
    }

    /// Takes over other settings while the program runs. Those of whom `is_same` says that nothing has changed
    /// stay as they are, with what is known of them; requests that are under way go on with whom they began.
    pub async fn replace(&self, settings: &Providers, defaults: &Defaults, is_same: impl Fn(&str) -> bool) {
        let _detecting = self.0.detecting.lock().await;
        let mut last_listing = self.0.listing.lock().await;
        let before = self.providers();
        let kept =
            |name: &str| before.iter().find(|provider| provider.name == name && !provider.detected && is_same(name));
        let mut now = configured(settings, defaults, |name, settings| match kept(name) {
            Some(provider) => Ok(provider.clone()),
            None => Provider::new(name, settings, &self.0.client).map(Arc::new),
        });
        let found = before.iter().filter(|provider| provider.detected);
        let found: Vec<_> = found.filter(|found| now.iter().all(|other| other.name != found.name)).cloned().collect();
        now.extend(found);
        self.0.wishes.store(Arc::new(Wishes::new(settings, defaults)));
        self.0.providers.store(Arc::new(now));
        // Who is new is asked for their models with the next list.
        if let Some(asked) = last_listing.as_mut() {
            asked.all_answered = false;
        }
        self.0.changes.send_modify(|count| *count += 1);
    }

    pub fn providers(&self) -> Arc<Vec<Arc<Provider>>> {
        self.0.providers.load_full()
    }

    /// The client that needs no proxy.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    pub fn default_provider(&self) -> Option<String> {
        self.0.wishes.load().default_provider.clone()
    }

    /// The model where nobody names one that is served: the operator's, or else that of the first provider that has one.
    pub fn default_model(&self) -> Option<String> {
        let of_provider = |provider: &Arc<Provider>| Some(format!("{}/{}", provider.name, provider.default_model()?));
        self.0.wishes.load().default_model.clone().or_else(|| self.providers().iter().find_map(of_provider))
    }

    /// Why nobody can be asked, if there are providers and all of them fail.
    pub fn all_failing(&self) -> Option<String> {
        let providers = self.providers();
        let failing = |provider: &Arc<Provider>| provider.is_resting() || provider.state().failing.is_some();
        let last = providers.last().filter(|_| providers.iter().all(failing))?;
        let why = last.state().failing.map_or_else(|| Error::Resting.to_string(), |error| error.to_string());
        Some(format!("no provider answers; {}: {why}", last.name))
    }

    /// The models as far as they are known, without asking anybody.
    pub fn known(&self) -> Listing {
        let providers = self.providers();
        let offered = |provider: &Arc<Provider>| {
            let of = |model: &ModelInfo| Offered { provider: provider.clone(), model: model.clone() };
            provider.models().iter().map(of).collect::<Vec<_>>()
        };
        let failed = |provider: &Arc<Provider>| Some((provider.name.clone(), provider.state().not_listed?));
        Listing {
            models: providers.iter().flat_map(offered).collect(),
            failed: providers.iter().filter_map(failed).collect(),
        }
    }

    /// Is told whenever the models that are known become others.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Asks everybody for their models, unless they were asked no longer ago than `fresh`. One that fails keeps what it
    /// listed before, and does not hold up the others.
    pub async fn list(&self, fresh: Duration) {
        let mut last = self.0.listing.lock().await;
        let good_for = |asked: Asked| if asked.all_answered { fresh } else { fresh.min(AGAIN) };
        if last.is_some_and(|asked| asked.at.elapsed() < good_for(asked)) {
            return;
        }
        self.detect().await;
        let (providers, deadline) = (self.providers(), Instant::now() + LISTING);
        let asked = providers.iter().filter(|provider| provider.is_remote());
        let answers = join_all(asked.map(|provider| async move {
            let result = call::models(provider, deadline).await;
            if let Err(error) = &result {
                tracing::warn!(provider = provider.name, %error, "models cannot be listed");
            }
            (result.is_ok(), provider.listed(result))
        }));
        let answers = answers.await;
        if answers.iter().any(|(_, changed)| *changed) {
            self.0.changes.send_modify(|count| *count += 1);
        }
        *last = Some(Asked { at: Clock::now(), all_answered: answers.iter().all(|(answered, _)| *answered) });
    }

    /// Whether the models were ever asked for.
    pub async fn was_listed(&self) -> bool {
        self.0.listing.lock().await.is_some()
    }

    /// Looks for local servers on their usual ports.
    pub async fn detect(&self) {
        let _detecting = self.0.detecting.lock().await;
        let before = self.providers();
        let configured: Vec<_> = before.iter().filter(|provider| !provider.detected).cloned().collect();
        let taken = |port: u16| configured.iter().any(|provider| is_local(provider.address().as_deref(), port));
        let wishes = self.0.wishes.load_full();
        let ports = wishes.detect_ports.iter().copied().filter(|port| !taken(*port));
        let answers = join_all(ports.map(|port| async move { (port, look(port, &self.0.client).await) })).await;
        let mut now = configured.clone();
        let mut changed = false;
        for (port, found) in answers {
            let name = name_of(port);
            let known = before.iter().find(|provider| provider.name == name && provider.detected).cloned();
            match (known, found) {
                (Some(known), Found::Models(models)) => {
                    changed |= known.listed(Ok(models));
                    now.push(known);
                }
                (Some(known), Found::Silence) => now.push(known),
                (None, Found::Models(models)) if !configured.iter().any(|provider| provider.name == name) => {
                    let base = base(port);
                    tracing::info!(provider = name, url = %base, models = models.len(), "found a local model server");
                    now.push(Arc::new(Provider::found(&name, base, models, &self.0.client)));
                }
                _ => {}
            }
        }
        let names = |providers: &[Arc<Provider>]| providers.iter().map(|provider| provider.name.clone()).collect();
        let (was, is): (Vec<String>, Vec<String>) = (names(&before), names(&now));
        for gone in was.iter().filter(|name| !is.contains(name)) {
            tracing::info!(provider = gone, "a local model server is gone");
        }
        if was != is {
            self.0.providers.store(Arc::new(now));
            changed = true;
        }
        if changed {
            self.0.changes.send_modify(|count| *count += 1);
        }
    }
}

impl Wishes {
    fn new(settings: &Providers, defaults: &Defaults) -> Wishes {
        Wishes {
            detect_ports: settings.detect_ports.clone(),
            default_provider: defaults.provider.clone(),
            default_model: defaults.model.clone(),
        }
    }
}

/// The providers that settings name, the default one first.
fn configured(
    settings: &Providers,
    defaults: &Defaults,
    make: impl Fn(&str, &config::Provider) -> Result<Arc<Provider>, Unusable>,
) -> Vec<Arc<Provider>> {
    let mut providers = Vec::new();
    for (name, settings) in &settings.named {
        match make(name, settings) {
            Ok(provider) => providers.push(provider),
            Err(unusable) => tracing::warn!("provider `{name}` {unusable}; it is not used"),
        }
    }
    if let Some(default) = &defaults.provider {
        // The others stay in their order.
        providers.sort_by_key(|provider| provider.name != *default);
        let found_later = settings.detect_ports.iter().any(|port| name_of(*port) == *default);
        if providers.first().is_none_or(|first| first.name != *default) && !found_later {
            tracing::warn!("the default provider `{default}` is not configured; see `providers`");
        }
    }
    providers
}

/// What providers offer, for choosing.
pub fn offers(providers: &[Arc<Provider>]) -> Vec<Offer<'_>> {
    providers.iter().map(|provider| offer(provider)).collect()
}

fn offer(provider: &Provider) -> Offer<'_> {
    Offer {
        name: &provider.name,
        protocol: provider.protocol(),
        official: provider.kind.is_official(),
        detected: provider.detected,
        keys: provider.keys(),
        models: provider.served(),
    }
}

/// Looks for a server that speaks OpenAI's protocol on this port. It is sent no key. Only one that says it is such a
/// list, and has a model in it, is taken for one: many things listen on these ports.
async fn look(port: u16, client: &Client) -> Found {
    let provider = Provider::found("somebody", base(port), Vec::new(), client);
    let Some(request) = provider.models_request(None) else { return Found::Nothing };
    let answer = match client.send(request, Instant::now() + DETECTING).await {
        Ok(answer) => answer,
        Err(Error::Timeout) => return Found::Silence,
        Err(_) => return Found::Nothing,
    };
    let says_so = serde_json::from_slice::<Value>(&answer.body).is_ok_and(|body| body["object"] == "list");
    let head = Head { status: answer.status, headers: &answer.headers, at: SystemTime::now() };
    match provider.models_response(head, &answer.body) {
        Ok((models, _)) if says_so && !models.is_empty() => Found::Models(models),
        _ => Found::Nothing,
    }
}

fn base(port: u16) -> Url {
    format!("http://127.0.0.1:{port}/v1").parse().expect("a number makes a port")
}

fn name_of(port: u16) -> String {
    match port {
        11434 => "ollama".into(),
        1234 => "lmstudio".into(),
        8000 => "vllm".into(),
        8080 => "llamacpp".into(),
        port => format!("local-{port}"),
    }
}

/// Whether an address is this port of this machine.
fn is_local(address: Option<&str>, port: u16) -> bool {
    let url = address.and_then(|address| Url::parse(address).ok());
    url.is_some_and(|url| {
        let host = url.host_str().unwrap_or_default();
        url.port_or_known_default() == Some(port) && matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    })
}

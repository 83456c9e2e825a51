//! A provider that was configured or found: what it speaks, where it is, what it offers, and how it is doing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use super::breaker::Breaker;
use super::capabilities::{self, Known};
use super::chat::Protocol;
use super::client::{self, Client};
use super::{Chat, Completion, Delta, Endpoint, Error, Event, Head, ModelInfo, Request};
use super::{anthropic, google, mock, openai};
use crate::config::providers as config;
use crate::config::providers::{Kind, Price};
use crate::config::secret::Secret;
use crate::locked::locked;

/// One provider.
#[derive(Debug)]
pub struct Provider {
    /// What the operator calls it, such as `openai` or `local`.
    pub name: String,
    pub kind: Kind,
    /// Found on this machine and not configured.
    pub detected: bool,
    /// One for each key; never empty.
    endpoints: Vec<Endpoint>,
    default_model: Option<String>,
    /// How long one try may take, and how long a stream may be silent.
    pub timeout: Duration,
    models: BTreeMap<String, config::Model>,
    pub(super) client: Client,
    pub breaker: Breaker,
    state: Mutex<State>,
}

/// How a provider is doing, as far as its last answers told.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// What its list of models said last.
    pub listed: Option<Listed>,
    /// Why its last answer was none.
    pub failing: Option<Error>,
    /// How long its last good answer took to come.
    pub latency: Option<Duration>,
    /// Models it said it does not have, and when; few, and soon forgotten.
    missing: Vec<(String, Instant)>,
}

/// A list of models, and when it was asked for.
#[derive(Debug, Clone)]
pub struct Listed {
    pub models: Arc<Vec<ModelInfo>>,
    pub at: Instant,
}

/// Reads the events of a stream.
#[derive(Debug)]
pub enum Decoder {
    OpenAi(openai::Decoder),
    Anthropic(anthropic::Decoder),
    Google(google::Decoder),
}

/// Why a provider cannot be asked as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("has no key; set `{variable}`, or `api_key` in the configuration")]
    NoKey { variable: &'static str },
    #[error("has no address; set its `base_url`, such as `http://localhost:11434/v1`")]
    NoAddress,
    #[error("has a header that is none: `{0}`; a name has letters, digits and `-`")]
    Header(String),
}

/// How many missing models are remembered of one provider, and for how long.
const MOST_MISSING: usize = 64;
const MISSING_FOR: Duration = Duration::from_secs(600);

impl Provider {
    /// What the settings describe.
    pub fn new(name: &str, settings: &config::Provider, direct: &Client) -> Result<Provider, Unusable> {
        let kind = settings.kind(name);
        let configured = settings.base_url.as_ref().map(|url| url.expose().clone());
        let base = match (configured, kind.address()) {
            (Some(base), _) => base,
            (None, Some(address)) => address.parse().expect("the addresses of companies are addresses"),
            (None, None) => return Err(Unusable::NoAddress),
        };
        let headers = headers(settings, &base)?;
        let keys: Vec<_> = settings.keys().cloned().map(Some).collect();
        // Whoever sits behind another address or has headers of its own may do without one.
        if keys.is_empty()
            && settings.base_url.is_none()
            && settings.headers.is_empty()
            && let Some(variable) = kind.key_variable()
        {
            return Err(Unusable::NoKey { variable });
        }
        let base = without_user(base);
        let keys = if keys.is_empty() { vec![None] } else { keys };
        let endpoint = |key| Endpoint { base: base.clone(), key, headers: headers.clone() };
        Ok(Provider {
            name: name.to_owned(),
            kind,
            detected: false,
            endpoints: keys.into_iter().map(endpoint).collect(),
            default_model: settings.default_model.clone(),
            timeout: settings.timeout.get(),
            models: settings.models.clone(),
            client: settings.proxy.as_ref().map_or_else(|| direct.clone(), |proxy| Client::through(proxy.expose())),
            breaker: Breaker::default(),
            state: Mutex::default(),
        })
    }

    /// One that was found on this machine, with the models it listed.
    pub fn found(name: &str, base: Url, models: Vec<ModelInfo>, direct: &Client) -> Provider {
        let base_url = base.as_str().parse().ok();
        let settings = config::Provider { kind: Some(Kind::Compatible), base_url, ..config::Provider::default() };
        let mut provider = Provider::new(name, &settings, direct).expect("it has an address and no headers");
        provider.detected = true;
        provider.listed(Ok(models));
        provider
    }

    pub fn protocol(&self) -> Option<Protocol> {
        match self.kind {
            Kind::OpenAi | Kind::Compatible => Some(Protocol::OpenAi),
            Kind::Anthropic => Some(Protocol::Anthropic),
            Kind::Google => Some(Protocol::Google),
            Kind::Mock => None,
        }
    }

    /// Where it is; nothing of a key.
    pub fn address(&self) -> Option<String> {
        self.protocol().map(|_| self.endpoints[0].shown())
    }

    pub fn keys(&self) -> usize {
        self.endpoints.len()
    }

    /// The model it is asked for where nobody names one: the one that is configured, or else the first of a server that
    /// has only models to chat with.
    pub fn default_model(&self) -> Option<String> {
        self.default_model.clone().or_else(|| match self.kind {
            Kind::Compatible | Kind::Mock => self.models().first().map(|model| model.id.clone()),
            Kind::OpenAi | Kind::Anthropic | Kind::Google => None,
        })
    }

    pub fn price(&self, model: &str) -> Option<Price> {
        self.models.get(model)?.price
    }

    /// What a model can do and does not take: by the file inside corbie, by its own list, by the operator.
    pub fn known(&self, model: &str) -> Known {
        let Some(protocol) = self.protocol() else { return Known::default() };
        let models = self.models();
        let live = models.iter().find(|listed| listed.id == model);
        let operator = self.models.get(model).and_then(|settings| settings.capabilities.as_ref());
        capabilities::merge(capabilities::of(protocol, model), live, operator)
    }

    pub fn state(&self) -> State {
        locked(&self.state).clone()
    }

    /// The models it listed last; empty where it was never asked.
    pub fn models(&self) -> Arc<Vec<ModelInfo>> {
        if self.kind == Kind::Mock {
            return Arc::new(mock::models());
        }
        locked(&self.state).listed.as_ref().map(|listed| listed.models.clone()).unwrap_or_default()
    }

    /// Whether it is known not to serve a model: it said so, or its list is known and lacks it.
    pub fn lacks(&self, model: &str, now: Instant) -> bool {
        let models = self.models();
        let state = locked(&self.state);
        let missing = state.missing.iter().any(|(name, at)| name == model && now.duration_since(*at) < MISSING_FOR);
        missing || (!models.is_empty() && !models.iter().any(|listed| listed.id == model))
    }

    /// Told what became of its list of models; tells whether the models are others than before.
    pub fn listed(&self, result: Result<Vec<ModelInfo>, Error>) -> bool {
        let mut state = locked(&self.state);
        match result {
            Ok(models) => {
                let changed = state.listed.as_ref().is_none_or(|before| *before.models != models);
                state.listed = Some(Listed { models: Arc::new(models), at: Instant::now() });
                state.failing = None;
                changed
            }
            // What it listed before is still the best that is known.
            Err(error) => {
                state.failing = Some(error);
                false
            }
        }
    }

    /// Told how a call for an answer ended.
    pub(super) fn answered(&self, model: &str, result: Result<(), &Error>, took: Duration) {
        let now = Instant::now();
        self.breaker.ended(result, now);
        let mut state = locked(&self.state);
        match result {
            Ok(()) => {
                state.latency = Some(took);
                state.failing = None;
            }
            // Says nothing of the provider.
            Err(Error::BadRequest { .. }) => {}
            Err(Error::ModelNotFound) => {
                state.missing.retain(|(name, at)| name != model && now.duration_since(*at) < MISSING_FOR);
                if state.missing.len() < MOST_MISSING {
                    state.missing.push((model.to_owned(), now));
                }
            }
            Err(error) => state.failing = Some(error.clone()),
        }
    }

    /// A request with one of its keys. Only those who speak a protocol are sent any.
    pub fn request(&self, key: usize, chat: &Chat) -> Option<Request> {
        let (endpoint, refuses) =
            (&self.endpoints[key.min(self.endpoints.len() - 1)], self.known(&chat.model).refuses());
        Some(match self.protocol()? {
            Protocol::OpenAi => openai::request(chat, endpoint, refuses),
            Protocol::Anthropic => anthropic::request(chat, endpoint, refuses),
            Protocol::Google => google::request(chat, endpoint, refuses),
        })
    }

    pub fn response(&self, head: Head<'_>, body: &[u8]) -> Result<Completion, Error> {
        let response = match self.protocol() {
            Some(Protocol::OpenAi) | None => openai::response(head, body),
            Some(Protocol::Anthropic) => anthropic::response(head, body),
            Some(Protocol::Google) => google::response(head, body),
        };
        response.map_err(|error| self.scrubbed(error))
    }

    /// The provider's own word for a failure goes out to callers, and must not be a key that it repeats (S-01).
    pub(super) fn scrubbed(&self, error: Error) -> Error {
        let keys = || self.endpoints.iter().filter_map(|endpoint| endpoint.key.as_ref()).map(Secret::expose);
        match error {
            Error::BadRequest { kind } if keys().any(|key| key == kind || key.len() >= 8 && kind.contains(key)) => {
                Error::BadRequest { kind: "bad request".into() }
            }
            error => error,
        }
    }

    pub fn decoder(&self) -> Decoder {
        match self.protocol() {
            Some(Protocol::OpenAi) | None => Decoder::OpenAi(openai::Decoder::default()),
            Some(Protocol::Anthropic) => Decoder::Anthropic(anthropic::Decoder::default()),
            Some(Protocol::Google) => Decoder::Google(google::Decoder::default()),
        }
    }

    /// The list of models: its first page, or the one a token names.
    pub fn models_request(&self, page: Option<&str>) -> Option<Request> {
        let endpoint = &self.endpoints[0];
        Some(match (self.protocol()?, page) {
            (Protocol::OpenAi, _) => openai::models_request(endpoint),
            (Protocol::Anthropic, None) => anthropic::models_request(endpoint),
            (Protocol::Anthropic, Some(page)) => anthropic::models_page(endpoint, page),
            (Protocol::Google, None) => google::models_request(endpoint),
            (Protocol::Google, Some(page)) => google::models_page(endpoint, page),
        })
    }

    /// The models of a page, and the token of the next.
    pub fn models_response(&self, head: Head<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
        let page = match self.protocol() {
            Some(Protocol::OpenAi) | None => openai::models_response(head, body),
            Some(Protocol::Anthropic) => anthropic::models_response(head, body),
            Some(Protocol::Google) => google::models_response(head, body),
        };
        page.map_err(|error| self.scrubbed(error))
    }
}

impl Kind {
    /// The company itself and not one that is compatible with it, so its models are known by their names.
    pub fn is_official(self) -> bool {
        self.address().is_some() && self != Kind::Mock
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::OpenAi => "openai",
            Kind::Anthropic => "anthropic",
            Kind::Google => "google",
            Kind::Compatible => "openai-compatible",
            Kind::Mock => "mock",
        }
    }

    /// Where the company is.
    fn address(self) -> Option<&'static str> {
        match self {
            Kind::OpenAi => Some("https://api.openai.com/v1"),
            Kind::Anthropic => Some("https://api.anthropic.com"),
            Kind::Google => Some("https://generativelanguage.googleapis.com"),
            Kind::Compatible => None,
            // Never asked over any network.
            Kind::Mock => Some("http://localhost"),
        }
    }

    fn key_variable(self) -> Option<&'static str> {
        match self {
            Kind::OpenAi => Some("OPENAI_API_KEY"),
            Kind::Anthropic => Some("ANTHROPIC_API_KEY"),
            Kind::Google => Some("GOOGLE_API_KEY"),
            Kind::Compatible | Kind::Mock => None,
        }
    }
}

impl Decoder {
    pub fn event(&mut self, event: &Event) -> Result<Vec<Delta>, Error> {
        match self {
            Decoder::OpenAi(decoder) => decoder.event(event),
            Decoder::Anthropic(decoder) => decoder.event(event),
            Decoder::Google(decoder) => decoder.event(event),
        }
    }

    /// Whether the answer has come to its end.
    pub fn is_complete(&self) -> bool {
        match self {
            Decoder::OpenAi(decoder) => decoder.is_complete(),
            Decoder::Anthropic(decoder) => decoder.is_complete(),
            Decoder::Google(decoder) => decoder.is_complete(),
        }
    }
}

/// The operator's headers, and the user and password of the address as one more.
fn headers(settings: &config::Provider, base: &Url) -> Result<HeaderMap, Unusable> {
    let mut headers = HeaderMap::new();
    if let Some(credentials) = client::basic_auth(base) {
        headers.insert(header::AUTHORIZATION, credentials);
    }
    for (name, value) in &settings.headers {
        let unusable = || Unusable::Header(name.clone());
        let header = HeaderName::try_from(name).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

fn without_user(mut url: Url) -> Url {
    // Both can be taken from wherever there is a host.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url
}

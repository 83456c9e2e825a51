//! A provider: protocol, endpoint, models and health.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, header};
use url::Url;

use super::capabilities::{self, ModelProperties};
use super::chat::Protocol;
use super::circuit_breaker::CircuitBreaker;
use super::embeddings::{EmbeddingBatch, EmbeddingRequest};
use super::health::ProviderHealth;
use super::http_client::{self, HttpClient};
use super::signer::Signer;
use super::{
    ChatRequest, ChatResponse, Completion, Delta, Endpoint, Error, HttpRequest, ModelInfo, ResponseHead, SseEvent,
};
use super::{anthropic, google, mock, openai};
use corbie_config::headers::{HeaderNameError, header_map};
use corbie_config::providers as config;
use corbie_config::providers::{Price, ProviderKind};
use corbie_config::secret::Secret;
use corbie_util::lock::lock;

/// One provider, configured or detected.
#[derive(Debug)]
pub struct Provider {
    /// The operator's name for it, such as `openai` or `local`.
    pub name: String,
    pub kind: ProviderKind,
    /// Detected on this machine rather than configured.
    pub detected: bool,
    /// One endpoint per key; never empty.
    endpoints: Vec<Endpoint>,
    default_model: Option<String>,
    /// Timeout of one attempt, and idle timeout of a stream.
    pub timeout: Duration,
    models: BTreeMap<String, config::ModelSettings>,
    pub(super) client: HttpClient,
    pub circuit_breaker: CircuitBreaker,
    health: Mutex<ProviderHealth>,
}

/// Decodes the events of a stream.
#[derive(Debug)]
pub enum StreamDecoder {
    OpenAi(openai::OpenAiDecoder),
    Anthropic(anthropic::AnthropicDecoder),
    Google(google::GoogleDecoder),
}

/// Why a configured provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderConfigError {
    #[error("has no API key; set {}`api_key` in the configuration", .variable.map(|name| format!("`{name}`, or ")).unwrap_or_default())]
    NoKey { variable: Option<&'static str> },
    #[error("has no base URL; set `base_url`, for example `http://localhost:11434/v1`")]
    NoAddress,
    #[error("has a header that {0}")]
    Header(#[from] HeaderNameError),
}

impl Provider {
    /// Builds a provider from its settings.
    pub fn new(name: &str, settings: &config::Provider, direct: &HttpClient) -> Result<Provider, ProviderConfigError> {
        let kind = settings.kind(name);
        let configured = settings.base_url.as_ref().map(|url| url.expose().clone());
        let base = match (configured, settings.default_base_url(name)) {
            (Some(base), _) => base,
            (None, Some(address)) => address.parse().expect("built-in base URLs are valid"),
            (None, None) => return Err(ProviderConfigError::NoAddress),
        };
        let headers = headers(settings, &base)?;
        let keys: Vec<_> = settings.keys().cloned().map(Some).collect();
        // A custom address or custom headers may make a key unnecessary.
        if keys.is_empty()
            && settings.base_url.is_none()
            && settings.headers.is_empty()
            && let Some(variable) = kind.key_variable()
        {
            let variable = Some(variable).filter(|_| name == kind.as_str());
            return Err(ProviderConfigError::NoKey { variable });
        }
        let base = http_client::strip_user_info(base);
        let keys = if keys.is_empty() { vec![None] } else { keys };
        let endpoint = |key| Endpoint { base: base.clone(), key, headers: headers.clone() };
        let provider = Provider {
            name: name.to_owned(),
            kind,
            detected: false,
            endpoints: keys.into_iter().map(endpoint).collect(),
            default_model: settings.default_model.clone(),
            timeout: settings.timeout.get(),
            models: settings.models.clone(),
            client: settings.proxy.as_ref().map_or_else(|| direct.clone(), |proxy| direct.with_proxy(proxy.expose())),
            circuit_breaker: CircuitBreaker::default(),
            health: Mutex::default(),
        };
        if !provider.is_remote() {
            provider.record_listing(Ok(mock::models()));
        }
        Ok(provider)
    }

    /// A server detected on this machine, with the models it listed.
    pub fn from_detection(name: &str, base: Url, models: Vec<ModelInfo>, direct: &HttpClient) -> Provider {
        let base_url = base.as_str().parse().ok();
        let settings =
            config::Provider { kind: Some(ProviderKind::Compatible), base_url, ..config::Provider::default() };
        let mut provider = Provider::new(name, &settings, direct).expect("it has a base URL and no headers");
        provider.detected = true;
        provider.record_listing(Ok(models));
        provider
    }

    pub fn protocol(&self) -> Protocol {
        match self.kind {
            ProviderKind::OpenAi | ProviderKind::Compatible | ProviderKind::Mock => Protocol::OpenAi,
            ProviderKind::Anthropic => Protocol::Anthropic,
            ProviderKind::Google => Protocol::Google,
        }
    }

    /// Whether requests go over the network. The mock answers in-process.
    pub fn is_remote(&self) -> bool {
        self.kind != ProviderKind::Mock
    }

    /// The base URL with secrets redacted.
    pub fn address(&self) -> Option<String> {
        self.is_remote().then(|| self.endpoints[0].redacted_base_url())
    }

    /// Host name and port; `None` for the mock.
    pub(super) fn host(&self) -> (Option<&str>, Option<u16>) {
        let base = &self.endpoints[0].base;
        if self.is_remote() { (base.host_str(), base.port_or_known_default()) } else { (None, None) }
    }

    /// The provider name of the OpenTelemetry conventions, or else the operator's name.
    pub(super) fn otel_name(&self) -> &str {
        match self.kind {
            ProviderKind::OpenAi => "openai",
            ProviderKind::Anthropic => "anthropic",
            ProviderKind::Google => "gcp.gemini",
            ProviderKind::Compatible | ProviderKind::Mock => &self.name,
        }
    }

    pub fn keys(&self) -> usize {
        self.endpoints.len()
    }

    /// The model used when a request names none (P-11): the configured one, a small model of an official provider, the
    /// only model, or else the first model of a local server, which costs nothing.
    pub fn default_model(&self) -> Option<String> {
        if self.default_model.is_none() && self.kind.is_official() {
            return Some(capabilities::default_of(self.protocol()).to_owned());
        }
        let models = self.models();
        let mut chatting = models.iter().filter(|model| !model.is_not_chat_model()).map(|model| model.id.clone());
        self.default_model.clone().or_else(|| match (chatting.next(), chatting.next()) {
            (only, None) => only,
            (first, _) if self.detected || !self.is_remote() => first,
            _ => None,
        })
    }

    pub fn price(&self, model: &str) -> Option<Price> {
        self.models.get(model)?.price
    }

    /// Capabilities and unsupported parameters of a model: built-in data, overridden by the provider's model list and
    /// then by the operator's settings.
    pub fn model_properties(&self, model: &str) -> ModelProperties {
        let models = self.models();
        let live = models.iter().find(|listed| listed.matches_name(model));
        let operator = self.models.get(model).and_then(|settings| settings.capabilities.as_ref());
        capabilities::merge(capabilities::builtin_properties(self.protocol(), model), live, operator)
    }

    pub fn health(&self) -> ProviderHealth {
        lock(&self.health).clone()
    }

    /// The models of the last listing; empty before the first.
    pub fn models(&self) -> Arc<Vec<ModelInfo>> {
        lock(&self.health).models.clone().unwrap_or_default()
    }

    /// The models it serves as far as known: those it lists, and those in the settings, which its list may lack.
    pub fn served_models(&self) -> Arc<Vec<ModelInfo>> {
        let listed = self.models();
        let mut unlisted =
            self.models.keys().filter(|id| !listed.iter().any(|model| model.matches_name(id))).peekable();
        if unlisted.peek().is_none() {
            return listed;
        }
        Arc::new(listed.iter().cloned().chain(unlisted.map(ModelInfo::from_id)).collect())
    }

    /// Whether the provider does not serve a model, as far as reported.
    pub fn lacks(&self, model: &str, now: Instant) -> bool {
        !self.models.contains_key(model) && lock(&self.health).lacks(model, now)
    }

    pub fn is_circuit_open(&self) -> bool {
        self.circuit_breaker.is_open(Instant::now())
    }

    /// Records the result of listing its models. Returns whether the models changed.
    pub fn record_listing(&self, result: Result<Vec<ModelInfo>, Error>) -> bool {
        lock(&self.health).record_listing(result)
    }

    /// Records the result of a call.
    pub(super) fn record_call(&self, model: &str, result: Result<(), &Error>, took: Duration) {
        let now = Instant::now();
        self.circuit_breaker.record_outcome(result, now);
        lock(&self.health).record_call(model, result, took, now);
    }

    /// Whether OpenAI requests are forwarded to it unmodified.
    pub fn accepts_passthrough(&self) -> bool {
        self.is_remote() && self.protocol() == Protocol::OpenAi
    }

    /// Builds the HTTP request with one of its keys; `None` for the mock.
    pub fn request(&self, key: usize, question: &ChatRequest) -> Result<Option<HttpRequest>, Error> {
        if !self.is_remote() {
            return Ok(None);
        }
        let endpoint = &self.endpoints[key.min(self.endpoints.len() - 1)];
        let refuses = self.model_properties(question.model()).unsupported_parameters();
        let official = self.kind == ProviderKind::OpenAi;
        if let (ChatRequest::Passthrough { received, model }, Protocol::OpenAi) = (question, self.protocol()) {
            let may_be_foreign =
                if official { received.may_contain_foreign_fields() } else { received.may_name_signer() };
            if !may_be_foreign {
                return Ok(Some(received.to_provider_request(model, endpoint, refuses)));
            }
        }
        let (chat, signer) = (question.chat()?, self.signer(question.model()));
        Ok(Some(match self.protocol() {
            Protocol::OpenAi if official => openai::official_request(&chat, endpoint, refuses),
            Protocol::OpenAi => openai::compatible_request(&chat, endpoint, refuses, &signer),
            Protocol::Anthropic => anthropic::request(&signer.without_foreign_proofs(chat), endpoint, refuses)?,
            Protocol::Google => google::request(&signer.without_foreign_proofs(chat), endpoint, refuses)?,
        }))
    }

    /// Distinguishes signatures of this provider's model from those of other models.
    pub(super) fn signer(&self, model: &str) -> Signer {
        Signer::new(&self.name, model)
    }

    /// Parses a response for an OpenAI client, or passes it through if it is complete.
    pub fn passthrough_response(
        &self,
        head: ResponseHead<'_>,
        body: Bytes,
        model: &str,
    ) -> Result<ChatResponse, Error> {
        let faultless = (self.protocol() == Protocol::OpenAi).then(|| openai::passthrough_usage(head, &body)).flatten();
        match faultless {
            Some(usage) => {
                let signed = openai::name_signer(&body, &self.signer(model));
                Ok(ChatResponse::Passthrough { body: signed.map_or(body, Bytes::from), usage })
            }
            None => self.response(head, &body, model).map(ChatResponse::Parsed),
        }
    }

    /// Parses the response of a model. Its signatures name the model.
    pub fn response(&self, head: ResponseHead<'_>, body: &[u8], model: &str) -> Result<Completion, Error> {
        let signer = self.signer(model);
        let response = match self.protocol() {
            Protocol::OpenAi => match openai::name_signer(body, &signer) {
                Some(body) => openai::response(head, body.as_bytes()),
                None => openai::response(head, body),
            },
            Protocol::Anthropic => anthropic::response(head, body).map(|completion| tag_proofs(completion, &signer)),
            Protocol::Google => google::response(head, body).map(|completion| tag_proofs(completion, &signer)),
        };
        response.map_err(|error| self.redact_keys(error))
    }

    /// Whether it serves embeddings. Anthropic does not, and the mock has no embedding model.
    pub fn supports_embeddings(&self) -> bool {
        self.is_remote() && self.protocol() != Protocol::Anthropic
    }

    /// Builds the embedding requests with one of its keys: several where one request does not take all texts.
    pub fn embed_requests(&self, key: usize, embed: &EmbeddingRequest) -> Result<Vec<HttpRequest>, Error> {
        let endpoint = &self.endpoints[key.min(self.endpoints.len() - 1)];
        match self.protocol() {
            _ if !self.supports_embeddings() => Err(Error::ModelNotFound),
            Protocol::Google => google::embed_requests(embed, endpoint),
            Protocol::OpenAi | Protocol::Anthropic => Ok(vec![openai::embed_request(embed, endpoint)]),
        }
    }

    /// Parses the response to one embedding request.
    pub fn embed_response(&self, head: ResponseHead<'_>, body: &Bytes) -> Result<EmbeddingBatch, Error> {
        let response = match self.protocol() {
            Protocol::Google => google::embed_response(head, body),
            Protocol::OpenAi | Protocol::Anthropic => {
                openai::embed_response(head, body).map(EmbeddingBatch::Passthrough)
            }
        };
        response.map_err(|error| self.redact_keys(error))
    }

    /// Redacts the provider's error word if it contains an API key, because clients see that word (S-01).
    pub(super) fn redact_keys(&self, error: Error) -> Error {
        let keys = || self.endpoints.iter().filter_map(|endpoint| endpoint.key.as_ref()).map(Secret::expose);
        match error {
            Error::BadRequest { kind } if keys().any(|key| key == kind || key.len() >= 8 && kind.contains(key)) => {
                Error::BadRequest { kind: "bad request".into() }
            }
            error => error,
        }
    }

    pub fn decoder(&self) -> StreamDecoder {
        match self.protocol() {
            Protocol::OpenAi => StreamDecoder::OpenAi(openai::OpenAiDecoder::default()),
            Protocol::Anthropic => StreamDecoder::Anthropic(anthropic::AnthropicDecoder::default()),
            Protocol::Google => StreamDecoder::Google(google::GoogleDecoder::default()),
        }
    }

    /// Request for the model list: the first page, or the page identified by a token.
    pub fn models_request(&self, page: Option<&str>) -> Option<HttpRequest> {
        let endpoint = &self.endpoints[0];
        self.is_remote().then(|| match (self.protocol(), page) {
            (Protocol::OpenAi, _) => openai::models_request(endpoint),
            (Protocol::Anthropic, None) => anthropic::models_request(endpoint),
            (Protocol::Anthropic, Some(page)) => anthropic::models_page(endpoint, page),
            (Protocol::Google, None) => google::models_request(endpoint),
            (Protocol::Google, Some(page)) => google::models_page(endpoint, page),
        })
    }

    /// The models of a page, and the token of the next page.
    pub fn models_response(
        &self,
        head: ResponseHead<'_>,
        body: &[u8],
    ) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
        let page = match self.protocol() {
            Protocol::OpenAi => openai::models_response(head, body),
            Protocol::Anthropic => anthropic::models_response(head, body),
            Protocol::Google => google::models_response(head, body),
        };
        page.map_err(|error| self.redact_keys(error))
    }
}

impl StreamDecoder {
    pub fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, Error> {
        match self {
            StreamDecoder::OpenAi(decoder) => decoder.event(event),
            StreamDecoder::Anthropic(decoder) => decoder.event(event),
            StreamDecoder::Google(decoder) => decoder.event(event),
        }
    }

    /// The final deltas after a complete stream.
    pub fn end(&mut self) -> Vec<Delta> {
        match self {
            StreamDecoder::OpenAi(_) | StreamDecoder::Anthropic(_) => Vec::new(),
            StreamDecoder::Google(decoder) => decoder.end(),
        }
    }

    /// Whether the last event carried token usage.
    pub fn carries_usage(&self) -> bool {
        match self {
            StreamDecoder::OpenAi(decoder) => decoder.carries_usage(),
            StreamDecoder::Anthropic(_) | StreamDecoder::Google(_) => false,
        }
    }

    /// Whether no further event is expected.
    pub fn is_finished(&self) -> bool {
        match self {
            StreamDecoder::OpenAi(decoder) => decoder.is_finished(),
            StreamDecoder::Anthropic(decoder) => decoder.is_complete(),
            StreamDecoder::Google(decoder) => decoder.is_finished(),
        }
    }

    /// Whether the answer is complete.
    pub fn is_complete(&self) -> bool {
        match self {
            StreamDecoder::OpenAi(decoder) => decoder.is_complete(),
            StreamDecoder::Anthropic(decoder) => decoder.is_complete(),
            StreamDecoder::Google(decoder) => decoder.is_complete(),
        }
    }
}

/// A response whose signatures name their signer.
fn tag_proofs(mut completion: Completion, signer: &Signer) -> Completion {
    signer.tag_parts(&mut completion.parts);
    completion
}

/// The operator's headers, plus basic authentication from the user info of the URL.
fn headers(settings: &config::Provider, base: &Url) -> Result<HeaderMap, ProviderConfigError> {
    let mut headers = header_map(&settings.headers)?;
    if let Some(credentials) = http_client::basic_auth(base) {
        headers.entry(header::AUTHORIZATION).or_insert(credentials);
    }
    Ok(headers)
}

//! `providers` and `defaults`: providers and default models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::HttpUrl;
use super::diagnostic::KeyPath;
use super::duration::Timeout;
use super::external_classifier::SettingDiagnostic;
use super::headers::header_map;
use super::model_capabilities::Overrides;
use super::secret::{Secret, SecretLine};

/// Providers of models. Every key except `required` and `detect_ports` is the name of a provider. `openai`, `anthropic`
/// and `google` are predefined; for any other name, `type` selects the kind of provider.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Providers {
    /// Fail at startup if no provider is available.
    pub required: bool,
    /// Local ports that are probed for model servers; the defaults are those of Ollama, LM Studio, vLLM and llama.cpp.
    /// An empty list disables the detection.
    #[schemars(length(max = 16))]
    pub detect_ports: Vec<u16>,
    #[serde(flatten)]
    pub named: BTreeMap<String, Provider>,
}

/// A provider of models.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Provider {
    /// Kind of provider: `openai`, `anthropic`, `google`, `openai-compatible` or `mock`. Defaults to the predefined
    /// kind of the name, or `openai-compatible`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderKind>,
    /// API key. The variables `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` and `GOOGLE_API_KEY` set the keys of these
    /// providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// Further API keys, used in turn when a key is rejected or rate-limited.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_keys: Vec<Secret>,
    /// Base URL, such as `http://localhost:11434/v1`. Defaults to the public endpoint of the provider. For `ollama`,
    /// `lmstudio`, `vllm` and `llamacpp` it defaults to their usual port on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<HttpUrl>,
    /// Model for requests that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretLine>,
    /// Timeout of one attempt: until the response is complete or, if it is streamed, until its first content, and then
    /// between chunks of the stream.
    pub timeout: ProviderTimeout,
    /// Proxy for requests, such as `http://proxy.example:3128`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<HttpUrl>,
    /// Prices and capabilities of models, by model name. A model in this map is offered even if the provider does not
    /// list it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelSettings>,
}

/// Kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// OpenAI.
    #[serde(rename = "openai")]
    OpenAi,
    Anthropic,
    /// Google Gemini.
    Google,
    /// Any server with the OpenAI chat completions API: Ollama, vLLM, llama.cpp, LM Studio and many more.
    #[serde(rename = "openai-compatible")]
    Compatible,
    /// Built-in provider with fixed responses, for testing.
    Mock,
}

/// Prices and capabilities of a model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Price of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Overrides of the model's known capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Overrides>,
}

/// Price of a million tokens, in a currency of your choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
    /// Price of input tokens.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Price of output tokens.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Price of input tokens from the provider's cache. Defaults to `input`.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

/// Provider and model for requests that name none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// Provider of models that no configured provider lists. The variable `DEFAULT_PROVIDER` also sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model for requests if neither the caller nor the category names an available model. The variable `DEFAULT_MODEL`
    /// also sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Defaults to two minutes: a long response that is not streamed takes that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ProviderTimeout(Timeout);

/// Names and usual ports of Ollama, LM Studio, vLLM and llama.cpp.
const LOCAL_SERVERS: [(&str, u16); 4] = [("ollama", 11434), ("lmstudio", 1234), ("vllm", 8000), ("llamacpp", 8080)];

/// Name of the provider on this port of this machine.
pub fn local_server_name(port: u16) -> String {
    let known = LOCAL_SERVERS.iter().find(|(_, usual)| *usual == port);
    known.map_or_else(|| format!("local-{port}"), |(name, _)| (*name).to_owned())
}

/// Base URL of a server on this machine.
pub fn local_base_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

impl ProviderKind {
    /// Whether this is the vendor itself rather than a compatible server, so that model names identify it.
    pub fn is_official(self) -> bool {
        matches!(self, ProviderKind::OpenAi | ProviderKind::Anthropic | ProviderKind::Google)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ProviderKind::OpenAi => "openai",
            ProviderKind::Anthropic => "anthropic",
            ProviderKind::Google => "google",
            ProviderKind::Compatible => "openai-compatible",
            ProviderKind::Mock => "mock",
        }
    }

    /// The vendor's base URL.
    pub fn base_url(self) -> Option<&'static str> {
        match self {
            ProviderKind::OpenAi => Some("https://api.openai.com/v1"),
            ProviderKind::Anthropic => Some("https://api.anthropic.com"),
            ProviderKind::Google => Some("https://generativelanguage.googleapis.com"),
            ProviderKind::Compatible => None,
            // The mock is never contacted over the network.
            ProviderKind::Mock => Some("http://localhost"),
        }
    }

    /// The vendor's environment variable for the key.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            ProviderKind::OpenAi => Some("OPENAI_API_KEY"),
            ProviderKind::Anthropic => Some("ANTHROPIC_API_KEY"),
            ProviderKind::Google => Some("GOOGLE_API_KEY"),
            ProviderKind::Compatible | ProviderKind::Mock => None,
        }
    }
}

impl Default for Providers {
    fn default() -> Self {
        Self { required: false, detect_ports: LOCAL_SERVERS.map(|(_, port)| port).into(), named: BTreeMap::new() }
    }
}

impl Providers {
    /// Validation across keys: servers without an address, and invalid headers.
    pub(super) fn diagnostics(&self) -> Vec<SettingDiagnostic> {
        let mut mistakes = Vec::new();
        for (name, provider) in &self.named {
            let path = KeyPath::default().key("providers").key(name);
            if provider.base_url.is_none() && provider.default_base_url(name).is_none() {
                let message = "requires `base_url`, such as `http://localhost:11434/v1`, or a known `type`";
                mistakes.push(SettingDiagnostic { path: path.clone(), message: message.into() });
            }
            if let Err(header) = header_map(&provider.headers) {
                mistakes.push(SettingDiagnostic {
                    path: path.key("headers").key(header.name()),
                    message: header.to_string(),
                });
            }
        }
        mistakes
    }
}

impl Default for ProviderTimeout {
    fn default() -> Self {
        Self(Timeout::seconds(120))
    }
}

impl ProviderTimeout {
    pub fn get(self) -> std::time::Duration {
        self.0.get()
    }
}

impl Provider {
    /// The configured kind, or the default for the name.
    pub fn kind(&self, name: &str) -> ProviderKind {
        self.kind.unwrap_or(match name {
            "openai" => ProviderKind::OpenAi,
            "anthropic" => ProviderKind::Anthropic,
            "google" => ProviderKind::Google,
            "mock" => ProviderKind::Mock,
            _ => ProviderKind::Compatible,
        })
    }

    /// The base URL if none is configured: the vendor's, or the usual one of a local server with a well-known name.
    pub fn default_base_url(&self, name: &str) -> Option<String> {
        let local = || LOCAL_SERVERS.iter().find(|(known, _)| *known == name).map(|(_, port)| local_base_url(*port));
        self.kind(name).base_url().map(str::to_owned).or_else(local)
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Secret> {
        self.api_key.iter().chain(&self.api_keys)
    }
}

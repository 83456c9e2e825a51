//! `providers` and `defaults`: providers and default models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::HttpUrl;
use super::duration::Timeout;
use super::external::Mistake;
use super::headers::header_map;
use super::problem::KeyPath;
use super::secret::{Secret, SecretLine};
use crate::providers::capabilities::Overrides;

/// Whose models are asked. Every key but `required` and `detect_ports` is the name of a provider: `openai`, `anthropic`
/// and `google` are known by their names, any other says with `type` what it is.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Providers {
    /// Do not start without a provider that can be asked.
    pub required: bool,
    /// Ports of this machine where a local model server is looked for: those of Ollama, LM Studio, vLLM and llama.cpp.
    /// An empty list looks for none.
    #[schemars(length(max = 16))]
    pub detect_ports: Vec<u16>,
    #[serde(flatten)]
    pub named: BTreeMap<String, Provider>,
}

/// A provider of models.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Provider {
    /// What it is: `openai`, `anthropic`, `google`, `openai-compatible` or `mock`. Left out, its name says it, and a name
    /// that says nothing is `openai-compatible`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The key it asks for. `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` and `GOOGLE_API_KEY` set those of the three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// Further keys, tried in turn where one is refused or has to wait.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_keys: Vec<Secret>,
    /// Where it is, such as `http://localhost:11434/v1`. The company's own address, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<HttpUrl>,
    /// The model that is asked where nobody names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Sent with every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretLine>,
    /// How long one attempt may take until its answer is complete or, if it is streamed, until its first content; then,
    /// how long the stream may be silent.
    pub timeout: ProviderTimeout,
    /// A proxy on the way, such as `http://proxy.example:3128`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<HttpUrl>,
    /// What is known of single models, by their names: prices, and what they take. A model that is named here is served,
    /// whether the provider lists it or not.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Model>,
}

/// What a provider is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// OpenAI itself.
    #[serde(rename = "openai")]
    OpenAi,
    Anthropic,
    /// Google's Gemini.
    Google,
    /// Any server that speaks OpenAI's chat completions: Ollama, vLLM, llama.cpp, LM Studio and many more.
    #[serde(rename = "openai-compatible")]
    Compatible,
    /// Answers by itself, always the same; for trying things out.
    Mock,
}

/// What is known of a model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// What its tokens cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// What it can do and does not take, where corbie does not know it or knows it wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Overrides>,
}

/// What a million tokens cost, in the currency you count in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
    /// Of those that are read.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Of those that are written.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Of those that are read from the provider's cache; the same as `input`, if left out.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

/// Who is asked where nobody says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// The provider of models that nobody else is known for. The variable `DEFAULT_PROVIDER` sets it too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that is asked where neither the caller nor the category names one that is served. The variable
    /// `DEFAULT_MODEL` sets it too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Two minutes, unless said otherwise: a long answer that comes as a whole takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ProviderTimeout(Timeout);

/// Ollama, LM Studio, vLLM, llama.cpp.
const DETECTED: [u16; 4] = [11434, 1234, 8000, 8080];

impl Default for Providers {
    fn default() -> Self {
        Self { required: false, detect_ports: DETECTED.into(), named: BTreeMap::new() }
    }
}

impl Providers {
    /// Validation across keys: servers without an address, and invalid headers.
    pub(super) fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        for (name, provider) in &self.named {
            let path = KeyPath::default().key("providers").key(name);
            if provider.kind(name) == Kind::Compatible && provider.base_url.is_none() {
                let message = "needs `base_url`, such as `http://localhost:11434/v1`; or say with `type` what it is";
                mistakes.push(Mistake { path: path.clone(), message: message.into() });
            }
            if let Err(header) = header_map(&provider.headers) {
                mistakes.push(Mistake { path: path.key("headers").key(header.name()), message: header.to_string() });
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
    pub fn kind(&self, name: &str) -> Kind {
        self.kind.unwrap_or(match name {
            "openai" => Kind::OpenAi,
            "anthropic" => Kind::Anthropic,
            "google" => Kind::Google,
            "mock" => Kind::Mock,
            _ => Kind::Compatible,
        })
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Secret> {
        self.api_key.iter().chain(&self.api_keys)
    }
}

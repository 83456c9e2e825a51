//! `list_providers`: configured and detected providers and their health (P-19).

use corbie_mcp::{Json, RegistrationError, Tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::router::Router;
use corbie_llm::provider::Provider;

const DESCRIPTION: &str = "List the LLM providers that are configured or were detected on this machine, with their \
health: whether each is up, its latency, its last error and its number of models.";

#[derive(Debug, Serialize, JsonSchema)]
struct ListProvidersOutput {
    /// In failover order
    providers: Vec<ProviderOutput>,
    /// Provider of models that no provider lists
    #[serde(skip_serializing_if = "Option::is_none")]
    default_provider: Option<String>,
    /// Model for requests that name none
    #[serde(skip_serializing_if = "Option::is_none")]
    default_model: Option<String>,
}

/// A provider without its secrets.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProviderOutput {
    pub name: String,
    /// openai, anthropic, google, openai-compatible or mock
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Base URL
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether it was detected on this machine and not configured
    pub detected: bool,
    /// up, failing, circuit_open, or unknown before the first request
    pub status: &'static str,
    /// Error of a failing provider
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of API keys
    pub keys: usize,
    /// Number of models in its latest list
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<usize>,
    /// Latency of its latest response
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
}

pub(super) fn tool(router: Router) -> Result<Tool, RegistrationError> {
    Tool::builder("list_providers")
        .title("List providers")
        .description(DESCRIPTION)
        .module("corbie::route")
        .no_input()
        .output::<Json<ListProvidersOutput>>()
        .run(move |_, _| {
            let pool = router.providers();
            let providers = pool.providers();
            let output = ListProvidersOutput {
                providers: providers.iter().map(|provider| ProviderOutput::of(provider)).collect(),
                default_provider: pool.default_provider(),
                default_model: pool.default_model(),
            };
            std::future::ready(Json(output))
        })
}

impl ProviderOutput {
    pub fn of(provider: &Provider) -> ProviderOutput {
        let state = provider.health();
        ProviderOutput {
            name: provider.name.clone(),
            kind: provider.kind.as_str(),
            url: provider.address(),
            detected: provider.detected,
            status: state.as_str(provider.is_circuit_open()),
            error: state.last_error.as_ref().or(state.listing_error.as_ref()).map(ToString::to_string),
            keys: provider.keys(),
            models: state.models.as_ref().map(|models| models.len()),
            latency_ms: state.latency.map(|latency| latency.as_secs_f64() * 1e3),
            default_model: provider.default_model(),
        }
    }
}

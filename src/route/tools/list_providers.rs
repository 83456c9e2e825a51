//! `list_providers`: configured and detected providers and their health (P-19).

use corbie_mcp::{Json, RegistrationError, Tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::providers::provider::Provider;
use crate::route::router::Router;

const DESCRIPTION: &str = "Lists the providers of models that are configured or were found on this machine, and how \
each is doing: whether it answers, how fast, how many models it has.";

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    /// In the order they are asked
    providers: Vec<Listed>,
    /// The provider of models that nobody else is known for
    #[serde(skip_serializing_if = "Option::is_none")]
    default_provider: Option<String>,
    /// The model where nobody names one
    #[serde(skip_serializing_if = "Option::is_none")]
    default_model: Option<String>,
}

/// A provider, without anything secret.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    pub name: String,
    /// openai, anthropic, google, openai-compatible or mock
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Where it is
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// It was found on this machine and not configured
    pub detected: bool,
    /// up, failing, resting (it is left alone for a while), or unknown before it was asked
    pub status: &'static str,
    /// Why it is failing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many keys it has
    pub keys: usize,
    /// How many models it listed last
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<usize>,
    /// How long its last answer took
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
        .output::<Json<Output>>()
        .run(move |_, _| {
            let pool = router.pool();
            let providers = pool.providers();
            let output = Output {
                providers: providers.iter().map(|provider| Listed::of(provider)).collect(),
                default_provider: pool.default_provider(),
                default_model: pool.default_model(),
            };
            std::future::ready(Json(output))
        })
}

impl Listed {
    pub fn of(provider: &Provider) -> Listed {
        let state = provider.state();
        Listed {
            name: provider.name.clone(),
            kind: provider.kind.as_str(),
            url: provider.address(),
            detected: provider.detected,
            status: state.word(provider.is_resting()),
            error: state.failing.as_ref().or(state.not_listed.as_ref()).map(ToString::to_string),
            keys: provider.keys(),
            models: state.listed.as_ref().map(|models| models.len()),
            latency_ms: state.latency.map(|latency| latency.as_secs_f64() * 1e3),
            default_model: provider.default_model(),
        }
    }
}

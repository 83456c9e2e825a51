//! `models/list`: the current models of all providers (P-05).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::router::Router;
use corbie_config::providers::Price;
use corbie_llm::Capabilities;
use corbie_llm::registry::{Listing, MODEL_LIST_TTL, ProviderModel, ProviderRegistry};

/// A model in the response.
#[derive(Debug, Serialize)]
struct ListedModel<'a> {
    id: &'a str,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Provider and model, unambiguous if several providers have a model of this name.
    full_id: String,
    /// Whether the provider is available.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    #[serde(skip_serializing_if = "Capabilities::is_empty")]
    capabilities: Capabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
}

/// A provider whose models could not be listed.
#[derive(Debug, Serialize, JsonSchema)]
struct FailedProvider {
    provider: String,
    error: String,
    kind: &'static str,
}

/// Refreshes expired model lists. The failure of one provider does not fail the list.
pub(crate) async fn list(router: &Router) -> Value {
    let pool = router.providers();
    pool.refresh_models(MODEL_LIST_TTL).await;
    listing(pool)
}

/// The models from the lists fetched so far.
pub fn listing(pool: &ProviderRegistry) -> Value {
    let Listing { models, failed } = pool.known_models();
    let listed: Vec<_> = models.iter().map(listed_model).collect();
    let mut listing = json!({ "models": listed });
    if !failed.is_empty() {
        let failed = failed.into_iter();
        let told =
            failed.map(|(provider, error)| FailedProvider { provider, error: error.to_string(), kind: error.kind() });
        listing["failed"] = json!(told.collect::<Vec<_>>());
    }
    listing
}

fn listed_model(offered: &ProviderModel) -> ListedModel<'_> {
    let ProviderModel { provider, model } = offered;
    let known = provider.model_properties(&model.id);
    ListedModel {
        id: &model.id,
        provider: &provider.name,
        name: model.name.as_deref(),
        full_id: format!("{}/{}", provider.name, model.id),
        status: provider.health().as_str(provider.is_circuit_open()),
        context: known.context,
        output: known.output,
        capabilities: known.capabilities,
        price: provider.price(&model.id),
    }
}

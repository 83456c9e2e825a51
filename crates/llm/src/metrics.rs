//! Provider health metrics.

use prometheus_client::registry::Registry;

use super::provider::Provider;
use super::registry::ProviderRegistry;
use corbie_util::lazy_gauge;

/// Registers gauges that are evaluated at scrape time.
pub fn register(pool: &ProviderRegistry, registry: &mut Registry) {
    let registry = registry.sub_registry_with_prefix("provider");
    let resting = gauge_per_provider(pool, Provider::is_circuit_open);
    lazy_gauge::register(registry, "circuit_open", "1 while the circuit breaker of the provider is open", resting);
    let failing = gauge_per_provider(pool, |provider| provider.health().last_error.is_some());
    lazy_gauge::register(registry, "last_call_failed", "1 if the latest call to the provider failed", failing);
}

fn gauge_per_provider(
    pool: &ProviderRegistry,
    is_so: fn(&Provider) -> bool,
) -> impl Fn() -> Vec<lazy_gauge::Sample> + Send + Sync + 'static {
    let pool = pool.clone();
    move || {
        let sample = |provider: &Provider| (vec![("provider", provider.name.clone())], u64::from(is_so(provider)));
        pool.providers().iter().map(|provider| sample(provider)).collect()
    }
}

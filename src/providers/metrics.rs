//! Provider health metrics.

use prometheus_client::registry::Registry;

use super::pool::Pool;
use super::provider::Provider;
use crate::gauges;

/// Registers gauges that are evaluated at scrape time.
pub fn register(pool: &Pool, registry: &mut Registry) {
    let registry = registry.sub_registry_with_prefix("provider");
    let resting = of_each(pool, Provider::is_resting);
    gauges::register(registry, "circuit_open", "1 while the circuit breaker of the provider is open", resting);
    let failing = of_each(pool, |provider| provider.state().failing.is_some());
    gauges::register(registry, "last_call_failed", "1 if the latest call to the provider failed", failing);
}

fn of_each(pool: &Pool, is_so: fn(&Provider) -> bool) -> impl Fn() -> Vec<gauges::Sample> + Send + Sync + 'static {
    let pool = pool.clone();
    move || {
        let sample = |provider: &Provider| (vec![("provider", provider.name.clone())], u64::from(is_so(provider)));
        pool.providers().iter().map(|provider| sample(provider)).collect()
    }
}

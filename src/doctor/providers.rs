//! Checks the configured providers. Remote providers are contacted only on request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{Check, Findings, SetupContext};
use crate::config::egress_policy::EgressPolicy;
use crate::config::providers::Provider as Settings;
use crate::providers::call;
use crate::providers::http_client::HttpClient;
use crate::providers::provider::Provider;
use crate::providers::registry::ProviderRegistry;

/// Timeout for listing the models of a provider.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let config = subject.config.as_ref()?;
    let mut findings = Findings::default();
    let client = HttpClient::with_egress_policy(EgressPolicy::new(&config.network));
    let looks = config.providers.named.iter().map(|(name, settings)| inspect(name, settings, &client, subject.online));
    for found in join_all(looks).await {
        findings.0.extend(found.0);
    }
    // Model servers on their default ports on this machine.
    let pool = ProviderRegistry::new(&config.providers, &config.defaults, client);
    pool.detect_local_servers().await;
    for found in pool.providers().iter().filter(|provider| provider.detected) {
        findings.ok(format!("`{}` detected at {}", found.name, found.address().unwrap_or_default()));
    }
    if findings.0.is_empty() {
        findings.note(
            "no provider is configured, and no local model server was detected; features that need a language model are unavailable",
            "set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GOOGLE_API_KEY`, or start a local model server such as Ollama",
        );
    }
    findings.check("providers")
}

/// Checks one configured provider.
async fn inspect(name: &str, settings: &Settings, client: &HttpClient, online: bool) -> Findings {
    let mut findings = Findings::default();
    let local = is_local(settings);
    match Provider::new(name, settings, client) {
        Err(unusable) => {
            findings.problem(format!("`{name}` {unusable}"), format!("correct `providers.{name}`, or remove it"));
        }
        Ok(provider) if !provider.is_remote() => findings.ok(format!("`{name}` is built in")),
        Ok(provider) if local || online => check_models(&provider, local, &mut findings).await,
        Ok(_) => findings.ok(format!("`{name}` is configured and was not contacted (`corbie doctor --online` does)")),
    }
    findings
}

async fn check_models(provider: &Provider, local: bool, findings: &mut Findings) {
    let name = &provider.name;
    match call::list_models(provider, (Instant::now() + LIST_TIMEOUT).into()).await {
        Ok(models) => findings.ok(format!("`{name}` responds with {} models", models.len())),
        Err(error) => {
            let advice = match local {
                true => format!("start it, or correct `providers.{name}.base_url`"),
                false => format!("check its key, its URL and the network, or remove `providers.{name}`"),
            };
            findings.problem(format!("`{name}` does not respond: {error}"), advice);
        }
    }
}

/// Whether requests to the provider stay on this machine.
fn is_local(settings: &Settings) -> bool {
    let host = settings.base_url.as_ref().and_then(|url| url.expose().host());
    let here = match host {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    here && settings.proxy.is_none()
}

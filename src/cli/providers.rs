//! `corbie providers`: lists providers and checks their current health.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::Value;

use super::progress::Progress;
use super::{CommandResult, json_output, sanitize_line, terminal};
use crate::config::egress_policy::EgressPolicy;
use crate::config::{self, LoadedConfig};
use crate::providers::call;
use crate::providers::capabilities::{Capabilities, ModelProperties};
use crate::providers::http_client::HttpClient;
use crate::providers::provider::{Provider, ProviderConfigError};
use crate::providers::registry::ProviderRegistry;
use crate::route;
use crate::route::methods::listing;
use crate::route::tools::ProviderOutput;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie providers
  corbie providers --models
  corbie providers --json")]
pub(super) struct Providers {
    /// List the models of each provider with their capabilities
    #[arg(long)]
    models: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Output of `--json`, in the format of `list_providers` and `models/list`.
#[derive(Serialize)]
struct ProvidersOutput<'a> {
    providers: Vec<&'a ProviderOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<Value>,
}

/// Log targets that are silenced, because this command reports the same itself.
pub(super) const QUIET_MODULES: &[&str] = &["corbie_llm"];

/// Maximum concurrent requests.
const MAX_CONCURRENT: usize = 16;
/// Timeout of listing the models of one provider.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(command: &Providers, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = HttpClient::with_egress_policy(EgressPolicy::new(&loaded.config.network));
    let pool = ProviderRegistry::new(&loaded.config.providers, &loaded.config.defaults, client);
    let listed = runtime.block_on(async {
        let progress = Progress::new();
        progress.update("listing models …");
        pool.detect_local_servers().await;
        query_providers(&pool).await
    });
    let unusable = misconfigured(&loaded.config.providers, &pool);
    if command.json {
        let told = ProvidersOutput {
            providers: listed.iter().chain(&unusable).collect(),
            default_provider: pool.default_provider(),
            default_model: pool.default_model(),
            models: command.models.then(|| listing(&pool)["models"].take()),
        };
        json_output::write(&told, out)?;
    } else if listed.is_empty() && unusable.is_empty() {
        writeln!(out, "{}", route::Error::NoProvider)?;
    } else {
        let models = |name: &str| if command.models { model_lines(&pool, name) } else { Vec::new() };
        write_table(listed.iter().chain(&unusable), models, out)?;
    }
    let nobody_fails = listed.is_empty() && unusable.is_empty();
    let somebody_answers = listed.iter().any(|listed| listed.error.is_none());
    Ok(if nobody_fails || somebody_answers { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Requests the models of all providers and measures the latency.
async fn query_providers(pool: &ProviderRegistry) -> Vec<ProviderOutput> {
    let one = |provider: Arc<Provider>| async move {
        let started = Instant::now();
        let result = call::list_models(&provider, (started + LIST_TIMEOUT).into()).await;
        let took = started.elapsed();
        let timed = result.is_ok() && provider.is_remote();
        provider.record_listing(result);
        ProviderOutput { latency_ms: timed.then_some(took.as_secs_f64() * 1e3), ..ProviderOutput::of(&provider) }
    };
    let providers = pool.providers();
    stream::iter(providers.iter().cloned()).map(one).buffered(MAX_CONCURRENT).collect().await
}

/// Configured providers that cannot be used, with the reason.
fn misconfigured(settings: &config::providers::Providers, pool: &ProviderRegistry) -> Vec<ProviderOutput> {
    let row = |(name, settings): (&String, &config::providers::Provider)| {
        let why = Provider::new(name, settings, pool.client()).err()?;
        Some(ProviderOutput {
            name: name.clone(),
            kind: settings.kind(name).as_str(),
            url: None,
            detected: false,
            status: if matches!(why, ProviderConfigError::NoKey { .. }) { "no key" } else { "unusable" },
            error: Some(why.to_string()),
            keys: 0,
            models: None,
            latency_ms: None,
            default_model: settings.default_model.clone(),
        })
    };
    settings.named.iter().filter_map(row).collect()
}

/// Prints a table, with details of a provider below its row.
fn write_table<'a>(
    providers: impl Iterator<Item = &'a ProviderOutput>,
    models: impl Fn(&str) -> Vec<String>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let head = ["NAME", "TYPE", "STATUS", "LATENCY", "MODELS", "DEFAULT", "URL"].map(str::to_owned);
    let row = |listed: &ProviderOutput| {
        let or_dash = |text: Option<String>| text.map_or_else(|| "-".into(), |text| sanitize_line(&text));
        [
            listed.name.clone(),
            listed.kind.to_owned(),
            listed.status.to_owned(),
            or_dash(listed.latency_ms.map(|latency| format!("{latency:.0} ms"))),
            or_dash(listed.models.map(|models| models.to_string())),
            or_dash(listed.default_model.clone()),
            or_dash(listed.url.clone()),
        ]
    };
    let below = |listed: &ProviderOutput| {
        let error = listed.error.iter().map(|error| format!("  {error}"));
        error.chain(models(&listed.name)).map(|line| sanitize_line(&line)).collect()
    };
    let rows = providers.map(|listed| (row(listed), below(listed)));
    let rows: Vec<([String; 7], Vec<String>)> = [(head, Vec::new())].into_iter().chain(rows).collect();
    let widths: Vec<usize> = (0..7).map(|column| widest(rows.iter().map(|(row, _)| row[column].as_str()))).collect();
    for (row, below) in rows {
        let padded = |(cell, columns): (&String, &usize)| format!("{cell}{:1$}", "", columns - terminal::width(cell));
        let cells: Vec<String> = row.iter().zip(&widths).map(padded).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
        for line in below {
            match terminal::stdout_columns().filter(|columns| terminal::width(&line) > *columns) {
                None => writeln!(out, "{line}")?,
                Some(columns) => terminal::wrap(&line, columns.saturating_sub(2))
                    .iter()
                    .try_for_each(|line| writeln!(out, "  {line}"))?,
            }
        }
    }
    Ok(())
}

/// One line per model of a provider.
fn model_lines(pool: &ProviderRegistry, provider: &str) -> Vec<String> {
    let providers = pool.providers();
    let Some(provider) = providers.iter().find(|known| known.name == provider) else { return Vec::new() };
    let models = provider.models();
    let width = widest(models.iter().map(|model| model.id.as_str()));
    let line = |id: &String| {
        let ModelProperties { context, capabilities, .. } = provider.model_properties(id);
        let context = context.map_or_else(|| "-".into(), format_tokens);
        format!("  {id:<width$}  {context:>5}  {}", capability_list(&capabilities)).trim_end().to_owned()
    };
    models.iter().map(|model| line(&model.id)).collect()
}

fn capability_list(capabilities: &Capabilities) -> String {
    let Capabilities { images, tools, reasoning, structured_output, .. } = capabilities;
    let all =
        [(images, "images"), (tools, "tools"), (reasoning, "reasoning"), (structured_output, "structured output")];
    let known = all.into_iter().filter(|(can, _)| **can == Some(true)).map(|(_, name)| name);
    known.collect::<Vec<_>>().join(", ")
}

/// A number of tokens in short form, such as `128k`.
fn format_tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}M", number / 1_000_000),
    }
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(terminal::width).max().unwrap_or(0)
}

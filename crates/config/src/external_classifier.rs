//! Merges `classification` and `classifier` (F-32, X-24) into one form for the classification server.
//!
//! A key that is set in one section applies. A key that is set in both must have the same value in both.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use url::Url;

use super::Config;
use super::classifier::McpCategoryModel;
use super::diagnostic::KeyPath;
use super::headers::{HeaderNameError, header_map};
use super::mcp_server::{McpServer, TransportKind};
use super::program::Program;
use super::secret::SecretLine;

/// When a category applies, independent of the classifier that assigned it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassificationPolicy {
    /// Below this confidence the fallback category applies.
    pub threshold: f32,
    pub fallback: String,
    /// Whether the built-in classifier may be used. Without it, and without a server, prompts go to the default model.
    pub builtin: bool,
}

/// Connection and call settings of a classification server.
#[derive(Debug, Clone)]
pub struct Settings {
    pub transport: Transport,
    /// The tool that classifies a text.
    pub classify_tool: String,
    /// The tool that lists the categories.
    pub list_tool: String,
    /// Maximum duration of one request. A call including its retries and backoff takes at most twice as long, because a
    /// prompt is waiting for it.
    pub timeout: Duration,
    /// Maximum retries of a request that could not be sent or timed out.
    pub max_retries: u32,
    /// If false, the list is requested before every text.
    pub cache_categories: bool,
    /// Zero means never.
    pub refresh_interval: Duration,
    /// A server with a different number of categories is not used.
    pub num_categories: Option<usize>,
}

/// Transport of a server. `Debug` does not reveal values of headers and variables.
#[derive(Debug, Clone)]
pub enum Transport {
    /// `POST {url}/tools/call` and so on; falls back to JSON-RPC at `url`.
    Http { url: Url, headers: HeaderMap },
    /// JSON-RPC at `url`.
    StreamableHttp { url: Url, headers: HeaderMap },
    /// JSON-RPC over the stdio of a child process.
    Stdio { command: Program, args: Vec<String>, env: BTreeMap<String, SecretLine> },
}

/// Contradicting settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDiagnostic {
    pub path: KeyPath,
    pub message: String,
}

const DEFAULT_THRESHOLD: f64 = 0.6;
const DEFAULT_URL: &str = "http://localhost:8090/mcp";
const DEFAULT_CLASSIFY_TOOL: &str = "classify_text";
/// Each section keeps its original timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
const LEGACY_TIMEOUT: Duration = Duration::from_secs(30);

const SECTION: &str = "classification";
const LEGACY_SECTION: &str = "classifier.mcp_category_model";

impl Config {
    /// The classification server that replaces the built-in classifier, if one is configured.
    pub fn external_classifier(&self) -> Result<Option<Settings>, Vec<SettingDiagnostic>> {
        let older = self.classifier.mcp_category_model.clone();
        let asked = self.classification.source.as_ref().map(|source| source == "mcp");
        let enabled = older.as_ref().map(|older| older.enabled);
        let mut both = SectionMerge::default();
        let wanted = both.merge(("type", asked), ("enabled", enabled)).unwrap_or(false);
        let settings = match wanted {
            true => self.external_classifier_settings(
                older.unwrap_or_default(),
                enabled.is_some() && asked.is_none(),
                &mut both,
            ),
            false => None,
        };
        if both.diagnostics.is_empty() { Ok(settings) } else { Err(both.diagnostics) }
    }

    /// When a category applies. [`Config::load`] has rejected contradicting settings.
    pub fn classification_policy(&self) -> ClassificationPolicy {
        let older = self.classifier.mcp_category_model.as_ref().filter(|older| older.enabled);
        let threshold = self.classification.confidence_threshold.or(older.and_then(|older| older.threshold));
        ClassificationPolicy {
            threshold: threshold.unwrap_or(DEFAULT_THRESHOLD) as f32,
            fallback: self.classification.fallback_category.clone(),
            builtin: self.classifier.category_model.is_on(),
        }
    }

    /// `older_only` is whether only the older section configures the server.
    fn external_classifier_settings(
        &self,
        older: McpCategoryModel,
        older_only: bool,
        both: &mut SectionMerge,
    ) -> Option<Settings> {
        let server = &self.classification.mcp_server;
        both.merge(("confidence_threshold", self.classification.confidence_threshold), ("threshold", older.threshold));
        let kind = both.merge(("mcp_server.transport", server.transport), ("transport_type", older.transport_type));
        let timeout = both.merge(
            ("mcp_server.timeout", server.timeout.map(Duration::from)),
            ("timeout_seconds", older.timeout_seconds.map(Duration::from)),
        );
        let classify = both.merge(
            ("mcp_server.tools.classify", server.tools.classify.clone()),
            ("tool_name", older.tool_name.clone()),
        );
        let transport = transport(kind.unwrap_or(TransportKind::Http), server, &older, both)?;
        Some(Settings {
            transport,
            classify_tool: classify.unwrap_or_else(|| DEFAULT_CLASSIFY_TOOL.into()),
            list_tool: server.tools.list_categories.clone(),
            timeout: timeout.unwrap_or(if older_only { LEGACY_TIMEOUT } else { DEFAULT_TIMEOUT }),
            max_retries: server.max_retries,
            cache_categories: server.cache_categories,
            refresh_interval: server.refresh_interval.get(),
            num_categories: self.classification.num_categories,
        })
    }
}

fn transport(
    kind: TransportKind,
    server: &McpServer,
    older: &McpCategoryModel,
    both: &mut SectionMerge,
) -> Option<Transport> {
    match kind {
        TransportKind::Stdio => stdio_transport(server, older, both),
        TransportKind::Http => http_target(server, older, both).map(|(url, headers)| Transport::Http { url, headers }),
        TransportKind::StreamableHttp => {
            http_target(server, older, both).map(|(url, headers)| Transport::StreamableHttp { url, headers })
        }
    }
}

fn stdio_transport(server: &McpServer, older: &McpCategoryModel, both: &mut SectionMerge) -> Option<Transport> {
    let name = |command: &Option<Program>| command.as_ref().map(|command| command.name().to_owned());
    both.merge(("mcp_server.command", name(&server.command)), ("command", name(&older.command)));
    let command = server.command.as_ref().or(older.command.as_ref()).cloned();
    let args = both.merge(("mcp_server.args", non_empty(&server.args)), ("args", non_empty(&older.args)));
    let env = both.merge(("mcp_server.env", non_empty(&server.env)), ("env", non_empty(&older.env)));
    let Some(command) = command else {
        let (section, transport) = match server.transport {
            Some(_) => ("classification.mcp_server", "transport"),
            None => (LEGACY_SECTION, "transport_type"),
        };
        let message = format!("is `stdio`, which requires a command; set `{section}.command`");
        both.report(KeyPath::dotted(section).key(transport), message);
        return None;
    };
    Some(Transport::Stdio { command, args: args.unwrap_or_default(), env: env.unwrap_or_default() })
}

fn http_target(server: &McpServer, older: &McpCategoryModel, both: &mut SectionMerge) -> Option<(Url, HeaderMap)> {
    let url = both.merge(("mcp_server.url", server.url.clone()), ("url", older.url.clone()));
    let url: Url = url.map_or_else(|| DEFAULT_URL.parse().expect("a URL"), |url| url.expose().clone());
    if !url.username().is_empty() || url.password().is_some() {
        let key =
            if server.url.is_some() { "classification.mcp_server.url" } else { "classifier.mcp_category_model.url" };
        both.report(KeyPath::dotted(key), "must not contain credentials; send them in `headers`".into());
        return None;
    }
    both.merge(("mcp_server.headers", non_empty(&server.headers)), ("headers", non_empty(&older.headers)));
    let newer = both.headers("classification.mcp_server.headers", header_map(&server.headers))?;
    let older = both.headers("classifier.mcp_category_model.headers", header_map(&older.headers))?;
    Some((url, if newer.is_empty() { older } else { newer }))
}

/// An empty list counts as unset.
fn non_empty<T: Clone + Default + PartialEq>(list: &T) -> Option<T> {
    (*list != T::default()).then(|| list.clone())
}

/// Collects contradictions.
#[derive(Default)]
struct SectionMerge {
    diagnostics: Vec<SettingDiagnostic>,
}

impl SectionMerge {
    /// The value of a setting that has a key in each of the sections.
    fn merge<T: PartialEq>(&mut self, newer: (&str, Option<T>), older: (&str, Option<T>)) -> Option<T> {
        if let (Some(one), Some(other)) = (&newer.1, &older.1)
            && one != other
        {
            let message = format!("conflicts with `{SECTION}.{}`; remove one of them", newer.0);
            self.report(KeyPath::dotted(&format!("{LEGACY_SECTION}.{}", older.0)), message);
        }
        newer.1.or(older.1)
    }

    fn headers(&mut self, key: &str, headers: Result<HeaderMap, HeaderNameError>) -> Option<HeaderMap> {
        headers.map_err(|error| self.report(KeyPath::dotted(key).key(error.name()), error.to_string())).ok()
    }

    fn report(&mut self, path: KeyPath, message: String) {
        self.diagnostics.push(SettingDiagnostic { path, message });
    }
}

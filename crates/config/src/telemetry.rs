//! `telemetry`: export of spans.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::HttpUrl;
use super::diagnostic::KeyPath;
use super::duration::Timeout;
use super::external_classifier::SettingDiagnostic;
use super::headers::header_map;
use super::secret::SecretLine;

/// Export of telemetry.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Export of spans to an OpenTelemetry collector.
    #[serde(skip_serializing_if = "Otlp::is_default")]
    pub otlp: Otlp,
}

/// Spans of requests and provider calls for an OpenTelemetry collector. Prompts and responses are not recorded.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Otlp {
    /// Base URL of the collector's OTLP/HTTP receiver, such as `http://localhost:4318`; `/v1/traces` is appended.
    /// Nothing is exported if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<HttpUrl>,
    /// Headers of every request, such as an API key of the collector.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretLine>,
    /// Service name of this program in spans.
    #[schemars(length(min = 1, max = 200))]
    pub service_name: String,
    /// Share of traces that is exported. The sampling decision of a caller that sends a trace context takes precedence.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample_ratio: f64,
    /// Timeout of an export request.
    pub timeout: Timeout,
}

impl Default for Otlp {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            service_name: "corbie".into(),
            sample_ratio: 1.0,
            timeout: Timeout::seconds(10),
        }
    }
}

impl Otlp {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Telemetry {
    /// Rejects headers that cannot be sent.
    pub(super) fn diagnostics(&self) -> Vec<SettingDiagnostic> {
        let path = KeyPath::dotted("telemetry.otlp.headers");
        let wrong = header_map(&self.otlp.headers).err();
        wrong
            .map(|header| SettingDiagnostic { path: path.key(header.name()), message: header.to_string() })
            .into_iter()
            .collect()
    }
}

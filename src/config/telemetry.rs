//! `telemetry`: export of spans.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::HttpUrl;
use super::duration::Timeout;
use super::external::Mistake;
use super::headers::header_map;
use super::problem::KeyPath;
use super::secret::SecretLine;

/// Where is told what the server does, besides stderr.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Spans for an OpenTelemetry collector. Needs a program that was built with `--features otlp`.
    #[serde(skip_serializing_if = "Otlp::is_default")]
    pub otlp: Otlp,
}

/// Spans for an OpenTelemetry collector: requests, and calls of providers. Never what was asked or answered.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Otlp {
    /// Where the collector takes OTLP over HTTP, such as `http://localhost:4318`; `/v1/traces` is put after it. Left out,
    /// nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<HttpUrl>,
    /// Sent with every request, such as a key of the collector.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretLine>,
    /// What the collector calls this program.
    #[schemars(length(min = 1, max = 200))]
    pub service_name: String,
    /// The share of traces that is sent. A caller who sends a trace along decides about it.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample_ratio: f64,
    /// How long the collector may take for one request.
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
    /// Headers that cannot be sent.
    pub(super) fn mistakes(&self) -> Vec<Mistake> {
        let path = KeyPath::dotted("telemetry.otlp.headers");
        let wrong = header_map(&self.otlp.headers).err();
        wrong.map(|header| Mistake { path: path.key(header.name()), message: header.to_string() }).into_iter().collect()
    }
}

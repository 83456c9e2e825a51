//! Target of spans that are exported but not logged.

/// Target of spans for collectors only. Without an exporter they are disabled and cost nothing.
pub const COLLECTOR_TARGET: &str = "corbie::genai";

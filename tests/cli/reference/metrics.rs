//! `docs/reference/metrics.md`: every metric of a running server.

use std::collections::BTreeMap;

use serde_json::json;

use super::{cell, check};
use crate::process::{call, request, wait_for};
use crate::upstream::FakeUpstream;

/// Memory limit for bodies in bytes, so that a body can exceed it.
const MEMORY: usize = 1 << 20;
const TAXONOMY: &str = "categories:\n  - {name: greeting, examples: [hello, hi there]}\n  - {name: sums, examples: [two and two, three times four]}\n";

/// Metadata of a metric family.
#[derive(Default)]
struct MetricFamily {
    kind: String,
    unit: String,
    help: String,
}

#[test]
fn the_reference_has_every_metric() {
    check("metrics.md", &page(&metrics_after_use()));
}

/// The metrics of a server after using every feature with a metric: unused metrics are not exported.
fn metrics_after_use() -> String {
    let upstream = FakeUpstream::start();
    upstream.configure(
        "acme: {base_url: 'BASE/v1', api_key: KEY, default_model: echo-large, \
         models: {echo-large: {price: {input: 1, output: 2}}}}",
    );
    let setup = upstream.corbie("serve --port 0").variable("CORBIE_CLASSIFICATION__TAXONOMY", "two.yaml");
    let setup = setup.variable("CORBIE_SERVER__LIMITS__MAX_BODY_MEMORY", MEMORY).file("two.yaml", TAXONOMY);
    let setup = setup.file("note.txt", "Parcels are delivered within two days.");
    let folder = setup.folder().to_owned();
    let mut server = setup.start();
    let client = server.client();
    for (tool, arguments) in [
        ("classify_text", json!({ "text": "what is two and two" })),
        ("classify_text", json!({ "text": 7 })),
        ("chat_completion", json!({ "prompt": "hi" })),
        ("chat_completion", json!({ "prompt": "hi", "model": "acme/status-500" })),
        ("knowledge-add", json!({ "file_path": folder.join("note.txt") })),
    ] {
        client.post("/mcp", &call(1, tool, arguments));
    }
    client.post("/mcp", &request(1, "no/such", json!({})));
    client.call("POST", "/mcp", &[("Origin", "https://evil.example")], "{}");
    client.post("/mcp", &call(1, "classify_text", json!({ "text": "a".repeat(2 * MEMORY) })));
    std::fs::write(folder.join("two.yaml"), TAXONOMY.replace("hello", "good day")).expect("a new file");
    wait_for("the document and the taxonomy", || {
        let told = client.get("/metrics").body;
        let is_there = |begin: &str| told.lines().any(|line| line.starts_with(begin));
        (is_there("corbie_knowledge_documents 1") && is_there("corbie_classification_reloads_total{")).then_some(told)
    })
}

fn page(told: &str) -> String {
    let mut page = String::from("# Metrics\n\n");
    page += "Metrics of `GET /metrics` in the OpenMetrics format; names of counters end in `_total`, those of histograms in `_bucket`, `_sum` and `_count`.\n";
    page += "For labels, a dashboard and alerts see [Operations](../operations.md#metrics).\n\n";
    page += "| metric | type | description |\n|---|---|---|\n";
    for (name, MetricFamily { kind, unit, help }) in families(told) {
        let name = match kind.as_str() {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name,
        };
        let unit = if unit.is_empty() { unit } else { format!(", in {unit}") };
        page += &format!("| `{name}` | {kind}{unit} | {} |\n", cell(&help));
    }
    page
}

/// The metadata comments of the text format, by metric name.
fn families(told: &str) -> BTreeMap<String, MetricFamily> {
    let mut found: BTreeMap<String, MetricFamily> = BTreeMap::new();
    for line in told.lines().filter_map(|line| line.strip_prefix("# ")) {
        let mut words = line.splitn(3, ' ');
        let (Some(what), Some(name), Some(text)) = (words.next(), words.next(), words.next()) else { continue };
        let family = found.entry(name.to_owned()).or_default();
        match what {
            "TYPE" => family.kind = text.to_owned(),
            "UNIT" => family.unit = text.to_owned(),
            "HELP" => family.help = text.to_owned(),
            _ => {}
        }
    }
    found
}

#[test]
fn families_are_told_once_with_kind_unit_and_help() {
    let told = "# HELP b_seconds How long.\n# TYPE b_seconds histogram\n# UNIT b_seconds seconds\nb_seconds_sum 1\n# HELP a Calls.\n# TYPE a counter\na_total 3\n# EOF\n";
    let page = page(told);
    assert!(
        page.ends_with(
            "|---|---|---|\n| `a_total` | counter | Calls. |\n| `b_seconds` | histogram, in seconds | How long. |\n"
        ),
        "{page}"
    );
}

//! Explanations of a result: the nearest examples, and the rules that decided.

use corbie::app::{self, App};
use corbie::config::classification::ClassificationMethod;
use corbie_mcp::TrustLevel;
use serde_json::{Value, json};

use crate::fixture::{SMALL_TAXONOMY, app, call, tool_json, with_taxonomy};

async fn explain(app: &App, trust: TrustLevel, text: &str) -> Value {
    let params = json!({ "name": "classify_text", "arguments": { "text": text, "with_examples": true } });
    tool_json(&app.server.request(trust, "tools/call", &params).await.unwrap())
}

fn app_with_small_taxonomy(method: ClassificationMethod) -> (App, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, SMALL_TAXONOMY).unwrap();
    (app::build(&with_taxonomy(&path, method)).unwrap(), folder)
}

#[tokio::test]
async fn the_nearest_examples_come_nearest_first_and_only_when_asked_for() {
    let (app, _folder) = app_with_small_taxonomy(ClassificationMethod::Hybrid);
    let verdict = explain(&app, TrustLevel::Trusted, "when does the courier ring my bell").await;
    let examples = verdict["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 5, "{verdict}");
    assert_eq!(examples[0]["text"], "the courier never rang the bell");
    assert_eq!(examples[0]["category"], "delivery");
    let near: Vec<f64> = examples.iter().map(|example| example["similarity"].as_f64().unwrap()).collect();
    assert!(near.is_sorted_by(|one, next| one >= next), "{near:?}");
    assert_eq!((&verdict["rules"], verdict.get("matched_rule")), (&json!([]), None), "no rule decided");
    let plain = tool_json(&call(&app, "classify_text", json!({ "text": "where is it" })).await.unwrap());
    assert!(["examples", "rules", "matched_rule"].iter().all(|name| plain.get(name).is_none()), "{plain}");
}

#[tokio::test]
async fn a_rule_that_decided_is_named_and_the_examples_are_there_all_the_same() {
    let (app, _folder) = app_with_small_taxonomy(ClassificationMethod::Hybrid);
    app.classification.warm_up().await;
    let verdict = explain(&app, TrustLevel::Trusted, "INV-12").await;
    assert_eq!(verdict["method"], "rules");
    assert_eq!(verdict["matched_rule"], json!({ "category": "billing", "rule": r"^INV-\d+$" }));
    assert_eq!(verdict["rules"], json!([r"^INV-\d+$"]));
    assert_eq!(verdict["examples"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn rules_alone_have_no_vectors_and_so_no_examples() {
    let (app, _folder) = app_with_small_taxonomy(ClassificationMethod::Rules);
    let verdict = explain(&app, TrustLevel::Trusted, "a refund for the invoice").await;
    assert_eq!(verdict["examples"], json!([]));
    assert_eq!(verdict["rules"], json!(["refund", "invoice"]));
    let nothing = explain(&app, TrustLevel::Trusted, "hello").await;
    assert_eq!((&nothing["rules"], nothing.get("matched_rule")), (&json!([]), None));
}

#[tokio::test]
async fn untrusted_callers_see_no_examples_but_those_inside() {
    let (own, _folder) = app_with_small_taxonomy(ClassificationMethod::Hybrid);
    for trust in [TrustLevel::Untrusted, TrustLevel::Verified] {
        let verdict = explain(&own, trust, "where is my parcel").await;
        assert_eq!((&verdict["examples"], &verdict["rules"]), (&json!([]), &json!([])));
    }
    let trusted = explain(&own, TrustLevel::Trusted, "where is my parcel").await;
    assert!(!trusted["examples"].as_array().unwrap().is_empty(), "{trusted}");
    let inside = explain(&app(), TrustLevel::Untrusted, "who was the first pharaoh of egypt").await;
    assert!(!inside["examples"].as_array().unwrap().is_empty(), "{inside}");
}

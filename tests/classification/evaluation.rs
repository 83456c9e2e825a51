//! Evaluation of the categories through a tool.

use corbie::app::{self, App};
use corbie::config::classification::ClassificationMethod;
use corbie_mcp::{Error, TrustLevel};
use serde_json::{Value, json};

use crate::fixture::{SMALL_TAXONOMY, call, classify, tool_json, with_taxonomy};

fn app_with_small_taxonomy(method: ClassificationMethod) -> (App, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, SMALL_TAXONOMY).unwrap();
    (app::build(&with_taxonomy(&path, method)).unwrap(), folder)
}

async fn evaluate(app: &App, arguments: Value) -> Value {
    tool_json(&call(app, "evaluate_categories", arguments).await.unwrap())
}

fn labelled_examples(examples: &[(&str, &str)]) -> Value {
    let each = examples.iter().map(|(text, category)| json!({ "text": text, "category": category }));
    json!({ "examples": each.collect::<Vec<_>>() })
}

#[tokio::test]
async fn labelled_texts_are_judged_as_any_text_is() {
    let (app, _folder) = app_with_small_taxonomy(ClassificationMethod::Rules);
    let examples =
        [("a refund", "billing"), ("the parcel", "billing"), ("my courier", "delivery"), ("hello", "general")];
    let found = evaluate(&app, labelled_examples(&examples)).await;
    assert_eq!((&found["count"], &found["accuracy"], &found["held_out"]), (&json!(4), &json!(0.75), &json!(false)));
    assert_eq!(found["categories"], json!(["billing", "delivery", "general"]));
    assert_eq!(found["confusion"], json!([[1, 1, 0], [0, 1, 0], [0, 0, 1]]));
    let delivery = json!({ "name": "delivery", "count": 1, "precision": 0.5, "recall": 1.0 });
    assert_eq!(found["per_category"][1], delivery);
    let confidence = classify(&app, "the parcel").await["confidence"].clone();
    let mistake = json!({ "text": "the parcel", "expected": "billing", "got": "delivery", "confidence": confidence });
    assert_eq!(found["wrong_predictions"], json!([mistake]));
    let bins = found["bins"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin["count"].as_u64().unwrap()).sum::<u64>(), 4);
    assert_eq!((&bins[0]["from"], &bins[0]["mean_confidence"]), (&json!(0.0), &Value::Null));
    let (mean, error) = (found["mean_confidence"].as_f64().unwrap(), found["calibration_error"].as_f64().unwrap());
    assert!((0.5..1.0).contains(&mean) && (0.0..1.0).contains(&error), "{found}");
}

#[tokio::test]
async fn without_texts_the_examples_are_judged_by_what_was_learned_without_them() {
    let (app, _folder) = app_with_small_taxonomy(ClassificationMethod::Hybrid);
    let found = evaluate(&app, json!({})).await;
    assert_eq!(
        (&found["count"], &found["examples_available"], &found["held_out"]),
        (&json!(24), &json!(24), &json!(true))
    );
    // With training data the accuracy would be 1; held out, it cannot be.
    let accuracy = found["accuracy"].as_f64().unwrap();
    assert!((0.3..1.0).contains(&accuracy), "{found}");
    assert!(!found["wrong_predictions"].as_array().unwrap().is_empty());
    let rows = found["confusion"].as_array().unwrap();
    let right: u64 = rows.iter().enumerate().map(|(place, row)| row[place].as_u64().unwrap()).sum();
    assert!((right as f64 / 24.0 - accuracy).abs() < 1e-9, "{found}");
    // Rules do not learn from examples, so no example is held out.
    let (rules, _folder) = app_with_small_taxonomy(ClassificationMethod::Rules);
    let found = evaluate(&rules, json!({})).await;
    assert_eq!((&found["count"], &found["held_out"]), (&json!(24), &json!(false)));
}

#[tokio::test]
async fn what_cannot_be_judged_is_named() {
    let (app, _folder) = app_with_small_taxonomy(ClassificationMethod::Rules);
    let check = async |arguments: Value, expected: &str| {
        let result = call(&app, "evaluate_categories", arguments).await.unwrap();
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.to_string().contains(expected), "{result}");
    };
    check(labelled_examples(&[("a", "general"), ("b", "weather")]), "examples[1].category").await;
    check(labelled_examples(&[("a", "general"), (" ", "general")]), "examples[1].text").await;
    check(json!({ "examples": [] }), "examples").await;
    check(labelled_examples(&vec![("a", "general"); 2001]), "examples").await;
    let (alone, _folder) = {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.yaml");
        std::fs::write(&path, "categories: [{name: a, examples: [one text]}, {name: b, examples: [another]}]").unwrap();
        (app::build(&with_taxonomy(&path, ClassificationMethod::Hybrid)).unwrap(), folder)
    };
    let result = call(&alone, "evaluate_categories", json!({})).await.unwrap();
    assert!(result.to_string().contains("cross-validation requires"), "{result}");
}

#[tokio::test]
async fn untrusted_callers_cannot_have_it_measured() {
    let (app, _folder) = app_with_small_taxonomy(ClassificationMethod::Rules);
    let params = json!({ "name": "evaluate_categories", "arguments": {} });
    let refused = app.server.request(TrustLevel::Untrusted, "tools/call", &params).await;
    assert!(matches!(refused, Err(Error::TrustDenied { .. })));
    assert!(app.server.request(TrustLevel::Verified, "tools/call", &params).await.is_ok());
}

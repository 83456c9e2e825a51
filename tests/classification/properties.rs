//! V-06: invariants for every text.

use corbie::app::{self, App};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::fixture::{app, call, settings, tool_json};

fn check(app: &App, runtime: &Runtime, text: &str) -> Result<(), TestCaseError> {
    let ask = || runtime.block_on(call(app, "classify_text", json!({ "text": text, "with_probabilities": true })));
    let result = ask().unwrap();
    let verdict = tool_json(&result);
    if let Some(error) = verdict.get("error") {
        prop_assert!(
            text.trim().is_empty() || text.chars().all(|c| c.is_control() || !c.is_ascii_graphic()),
            "{error}"
        );
        prop_assert_eq!(verdict.as_object().unwrap().len(), 1);
        return Ok(());
    }
    let probabilities: Vec<f64> = serde_json::from_value(verdict["probabilities"].clone()).unwrap();
    let class = verdict["class"].as_u64().unwrap() as usize;
    let confidence = verdict["confidence"].as_f64().unwrap();
    let most = probabilities.iter().copied().fold(0.0, f64::max);
    // C-24
    prop_assert!(class < 5);
    prop_assert_eq!(probabilities[class], most);
    // C-25
    prop_assert!(probabilities.iter().all(|p| (0.0..=1.0).contains(p)));
    prop_assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{:?}", probabilities);
    // C-26
    prop_assert_eq!(confidence, most);
    // C-27
    let bits: f64 = probabilities.iter().filter(|p| **p > 0.0).map(|p| -p * p.log2()).sum();
    prop_assert!((verdict["entropy"].as_f64().unwrap() - bits).abs() < 1e-4);
    // C-28
    prop_assert_eq!(ask().unwrap().to_string(), result.to_string());
    Ok(())
}

/// Random texts of every kind, and realistic texts.
fn texts() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "what", "is", "the", "war", "of", "cells", "2", "+", "python", "why", "hello", "x^2", "phone", "кот", "日本",
        "🙂", "explain", "\u{0}", "\u{202e}", "ﬁ", "A\u{301}", "how", "do", "i", "percent", "1066", "virus", "thanks",
    ]);
    prop_oneof![
        any::<String>(),
        prop::collection::vec(words, 0..30).prop_map(|words| words.join(" ")),
        "[a-z ]{1,60}",
        "\\PC{0,300}",
    ]
}

#[test]
fn v06_c24_c25_c26_c27_c28_hold_for_every_text() {
    let runtime = Runtime::new().unwrap();
    // Without a cache, or a result would be compared with itself.
    let mut config = settings();
    config.classification.cache_entries = 0;
    let app = app::build(&config).unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner.run(&texts(), |text| check(&app, &runtime, &text)).unwrap();
    assert_eq!(app.classification.health().1, None);
}

#[test]
fn c28_results_are_the_same_after_a_restart_and_in_every_batch() {
    let runtime = Runtime::new().unwrap();
    let texts: Vec<String> = include_str!("everyday.jsonl")
        .lines()
        .step_by(9)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    let alone = |app: &App| -> Vec<Value> {
        let one = |text: &String| runtime.block_on(call(app, "classify_text", json!({ "text": text }))).unwrap();
        texts.iter().map(|text| tool_json(&one(text))).collect()
    };
    let together = |app: &App, size: usize| -> Vec<Value> {
        let batch = |texts: &[String]| {
            let result = runtime.block_on(call(app, "batch_categorize", json!({ "texts": texts }))).unwrap();
            tool_json(&result)["results"].as_array().unwrap().clone()
        };
        texts.chunks(size).flat_map(batch).collect()
    };
    let first = alone(&app());
    assert_eq!(alone(&app()), first);
    for size in [1, 7, 64] {
        assert_eq!(together(&app(), size), first, "in batches of {size}");
    }
}

use std::path::Path;

use corbie::app;
use corbie::config::classification::ClassificationMethod;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{SMALL_TAXONOMY, call, classify, tool_json, with_taxonomy};
use crate::small_model::ScorerModel;

fn write_small_taxonomy(folder: &TempDir) -> std::path::PathBuf {
    let path = folder.path().join("small.yaml");
    std::fs::write(&path, SMALL_TAXONOMY).unwrap();
    path
}

/// A model with these labels.
fn write_scorer_model(labels: &[&str], folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let labels: serde_json::Map<String, serde_json::Value> =
        labels.iter().enumerate().map(|(output, label)| (output.to_string(), json!(label))).collect();
    ScorerModel { config: json!({ "id2label": labels }), ..ScorerModel::default() }.write(folder);
}

#[tokio::test]
async fn c50_c51_every_method_speaks_the_same_protocol() {
    let folder = TempDir::new().unwrap();
    for method in [
        ClassificationMethod::Rules,
        ClassificationMethod::Embedding,
        ClassificationMethod::Model,
        ClassificationMethod::Hybrid,
    ] {
        let app = app::build(&with_taxonomy(&write_small_taxonomy(&folder), method)).unwrap();
        let verdict = classify(&app, "when will the courier bring my parcel").await;
        assert_eq!((&verdict["class"], &verdict["category"]), (&json!(1), &json!("delivery")), "{method:?}");
        assert_eq!(verdict["probabilities"].as_array().unwrap().len(), 3, "{method:?}");
        assert_eq!(verdict["model"], "acme/plain", "{method:?}");
        let by = verdict["method"].as_str().unwrap();
        let expected: &[&str] = match method {
            ClassificationMethod::Rules => &["rules"],
            ClassificationMethod::Embedding => &["embedding"],
            ClassificationMethod::Model => &["model"],
            ClassificationMethod::Hybrid => &["rules", "lexical", "model"],
        };
        assert!(expected.contains(&by), "{method:?}: {by}");
    }
}

#[tokio::test]
async fn c50_hybrid_lets_rules_decide_what_is_certain() {
    let folder = TempDir::new().unwrap();
    let app = app::build(&with_taxonomy(&write_small_taxonomy(&folder), ClassificationMethod::Hybrid)).unwrap();
    let verdict = classify(&app, "INV-2291").await;
    assert_eq!((&verdict["category"], &verdict["method"]), (&json!("billing"), &json!("rules")));
    assert_eq!(verdict["model"], "acme/accountant");
    let verdict = classify(&app, "i paid too much last month").await;
    assert_eq!((&verdict["category"], &verdict["method"]), (&json!("billing"), &json!("model")));
}

#[tokio::test]
async fn c50_a_category_of_twenty_examples_or_fewer_is_learned() {
    let folder = TempDir::new().unwrap();
    let app = app::build(&with_taxonomy(&write_small_taxonomy(&folder), ClassificationMethod::Hybrid)).unwrap();
    for (text, category) in [
        ("why did you take 40 euros from my account", "billing"),
        ("can i pay by credit card", "billing"),
        ("it still has not been shipped", "delivery"),
        ("they left the package with a neighbour", "delivery"),
        ("good evening", "general"),
    ] {
        assert_eq!(classify(&app, text).await["category"], category, "{text}");
    }
}

#[tokio::test]
async fn c54_t41_without_the_embedding_model_rules_decide_and_health_says_so() {
    let folder = TempDir::new().unwrap();
    let mut config = with_taxonomy(&write_small_taxonomy(&folder), ClassificationMethod::Hybrid);
    config.inference.embedding.path = Some(folder.path().join("no-such-model"));
    let app = app::build(&config).unwrap();
    let verdict = classify(&app, "send me the invoice").await;
    assert_eq!((&verdict["category"], &verdict["method"]), (&json!("billing"), &json!("rules")));
    let (members, impaired) = app.classification.health();
    assert_eq!(members["model"], "rules");
    assert!(impaired.unwrap().contains("falling back to rules"));
}

/// A model whose labels are the categories, in any order.
#[tokio::test]
async fn c51_a_fine_tuned_model_from_a_folder_decides() {
    let folder = TempDir::new().unwrap();
    let model = folder.path().join("scorer");
    write_scorer_model(&["general", "delivery", "billing"], &model);
    let mut config = with_taxonomy(&write_small_taxonomy(&folder), ClassificationMethod::Model);
    config.classification.model.path = Some(model.clone());
    let app = app::build(&config).unwrap();
    let verdict = classify(&app, "red blue").await;
    assert_eq!(verdict["method"], "model");
    let alone = corbie_infer::SequenceClassifier::open(&model, None, 1).unwrap().classify("red blue").unwrap();
    for (category, output) in [(0, 2), (1, 1), (2, 0)] {
        let probability = verdict["probabilities"][category].as_f64().unwrap();
        assert!((probability - f64::from(alone[output])).abs() < 1e-6, "{verdict} {alone:?}");
    }
    assert!(app.classification.health().0["model"].as_str().unwrap().starts_with("model:scorer@"));
}

#[tokio::test]
async fn c54_a_fine_tuned_model_that_does_not_fit_falls_back_to_what_was_learned() {
    let folder = TempDir::new().unwrap();
    let model = folder.path().join("scorer");
    write_scorer_model(&["general", "weather", "billing"], &model);
    let mut config = with_taxonomy(&write_small_taxonomy(&folder), ClassificationMethod::Model);
    config.classification.model.path = Some(model);
    let app = app::build(&config).unwrap();
    assert_eq!(classify(&app, "where is my parcel").await["category"], "delivery");
    let (members, impaired) = app.classification.health();
    assert!(members["model"].as_str().unwrap().starts_with("hybrid:"), "{members:?}");
    assert!(impaired.unwrap().contains("`weather` is not a category"));
}

#[tokio::test]
async fn what_was_trained_is_loaded_and_not_learned_again() {
    let folder = TempDir::new().unwrap();
    let path = write_small_taxonomy(&folder);
    let config = with_taxonomy(&path, ClassificationMethod::Hybrid);
    let fresh = classify(&app::build(&config).unwrap(), "is it here yet").await;
    save_trained(&path, &config).await;
    let app = app::build(&config).unwrap();
    assert_eq!(classify(&app, "is it here yet").await, fresh);
    assert_eq!(embedded_text_count(&app), 1, "only the text itself");
    // A truncated file is not used.
    let trained = path.with_extension("trained");
    let bytes = std::fs::read(&trained).unwrap();
    std::fs::write(&trained, &bytes[..bytes.len() / 2]).unwrap();
    let app = app::build(&config).unwrap();
    assert_eq!(classify(&app, "is it here yet").await, fresh);
    assert_eq!(embedded_text_count(&app), 25, "the text and 24 examples");
}

/// Number of texts embedded so far.
fn embedded_text_count(app: &app::App) -> usize {
    let mut registry = prometheus_client::registry::Registry::default();
    app.inference.register(&mut registry);
    let mut metrics = String::new();
    prometheus_client::encoding::text::encode(&mut metrics, &registry).unwrap();
    let line = metrics.lines().find(|line| line.contains("inference_texts_total")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Cancelling the first text must not cancel the training.
#[tokio::test]
async fn what_is_being_learned_is_learned_to_the_end() {
    let folder = TempDir::new().unwrap();
    let app = app::build(&with_taxonomy(&write_small_taxonomy(&folder), ClassificationMethod::Hybrid)).unwrap();
    let hurried = tokio::time::timeout(std::time::Duration::from_millis(1), classify(&app, "where is it now")).await;
    assert!(hurried.is_err());
    assert!(app.classification.health().1.unwrap().contains("training is in progress"));
    // `certain` rules need not wait for the training.
    assert_eq!(classify(&app, "INV-7").await["category"], "billing");
    app.classification.warm_up().await;
    assert_eq!(classify(&app, "where is my parcel").await["category"], "delivery");
    assert_eq!(app.classification.health().1, None);
}

async fn save_trained(path: &Path, config: &corbie::config::Config) {
    use corbie::classify::Taxonomy;
    use corbie::classify::training::{TrainedClassifier, saved_path};
    let inference = corbie::inference::Inference::new(config.inference.clone());
    let learned = TrainedClassifier::train(&Taxonomy::read(path).unwrap(), &inference).await.unwrap().unwrap();
    std::fs::write(saved_path(path), learned.to_bytes()).unwrap();
}

#[tokio::test]
async fn typing_errors_are_forgiven() {
    let app = crate::fixture::app();
    for (text, category) in [
        ("whatt is teh derivitive of x sqaured", "math"),
        ("who wno the batle of watreloo", "history"),
        ("my comptuer wont trun on anymroe", "technology"),
        ("how do volcaones erpt", "science"),
    ] {
        let verdict = classify(&app, text).await;
        assert_eq!(verdict["category"], category, "{text}: {verdict}");
    }
}

#[tokio::test]
async fn c53_a_device_that_is_not_there_is_no_reason_to_stop() {
    let mut config = crate::fixture::settings();
    config.inference.device = corbie::config::inference::Device::Gpu;
    let app = app::build(&config).unwrap();
    let told = tool_json(&call(&app, "classify_text", json!({ "text": "hello" })).await.unwrap());
    assert_eq!(told["category"], "general");
    assert_eq!(app.classification.health().0["device"], "cpu");
}

use prometheus_client::registry::Registry;

use crate::fixture::{app, classify, settings};
use corbie::app;
use corbie::config::classification::ClassificationMethod;

#[tokio::test]
async fn t40_c52_c58_health_tells_categories_model_and_index_size() {
    let app = app();
    for asked in [false, true] {
        if asked {
            classify(&app, "who was it").await;
        }
        let (members, impaired) = app.classification.health();
        assert_eq!(members["categories"].as_array().unwrap().len(), 5);
        assert_eq!(members["model"], "hybrid:all-MiniLM-L6-v2-int8");
        let examples = app.classification.snapshot().taxonomy.example_count();
        assert_eq!(members["index_size"], examples);
        assert!(examples >= 95);
        assert_eq!(impaired, None);
    }
    let mut config = settings();
    config.classification.method = ClassificationMethod::Rules;
    assert_eq!(app::build(&config).unwrap().classification.health().0["model"], "rules");
}

#[tokio::test]
async fn c57_confidence_and_entropy_are_counted_by_category() {
    let app = app();
    classify(&app, "what is 2 + 2").await;
    classify(&app, "what is 2 + 2").await;
    classify(&app, "hello").await;
    let mut registry = Registry::default();
    app.classification.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "classification_confidence_count{category=\"math\"} 2",
        "classification_entropy_count{category=\"math\"} 2",
        "classification_confidence_count{category=\"general\"} 1",
        "classification_predictions_total{method=\"rules\"} 2",
        "classification_cache_hits_total 1",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use corbie::app;
use corbie::config::classification::ClassificationMethod;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{call, categories, classify, tool_json, with_taxonomy};

fn write(path: &Path, categories: &[(&str, &str)]) {
    write_with(path, categories, "m");
}

/// A version of the taxonomy whose models have this provider.
fn write_with(path: &Path, categories: &[(&str, &str)], provider: &str) {
    write_examples(path, categories, provider, |_, word| format!("all about {word}, '{word} and more'"));
}

fn write_examples(path: &Path, categories: &[(&str, &str)], provider: &str, examples: impl Fn(&str, &str) -> String) {
    let entry = |(name, word): &(&str, &str)| {
        let examples = examples(name, word);
        format!(
            "  - name: {name}\n    model: {provider}/{name}\n    words: [{word}]\n    certain: ['^{word}$']\n    examples: [{examples}]\n"
        )
    };
    std::fs::write(path, format!("categories:\n{}", categories.iter().map(entry).collect::<String>())).unwrap();
}

#[tokio::test]
async fn a12_c55_a_reload_replaces_list_and_verdicts_in_one_step() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.yaml");
    write(&path, &[("fruit", "apple"), ("tools", "hammer")]);
    let app = app::build(&with_taxonomy(&path, ClassificationMethod::Hybrid)).unwrap();
    assert_eq!(classify(&app, "hammer").await["class"], 1);
    write(&path, &[("birds", "raven"), ("tools", "hammer"), ("fruit", "apple")]);
    app.classification.reload().await.unwrap();
    assert_eq!(categories(&app).await, ["fruit", "tools", "birds"]);
    assert_eq!(classify(&app, "hammer").await["class"], 1);
    assert_eq!(classify(&app, "raven").await["category"], "birds");
    assert_eq!(classify(&app, "all about raven and more").await["category"], "birds");
}

#[tokio::test]
async fn a12_a_file_with_mistakes_is_refused_and_the_old_one_stays() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.yaml");
    write(&path, &[("fruit", "apple"), ("tools", "hammer")]);
    let app = app::build(&with_taxonomy(&path, ClassificationMethod::Hybrid)).unwrap();
    let before = classify(&app, "apple").await;
    std::fs::write(&path, "categories: [{name: fruit, patterns: ['(']}]").unwrap();
    let error = app.classification.reload().await.unwrap_err().to_string();
    assert!(error.contains("t.yaml:1:"), "{error}");
    let (members, impaired) = app.classification.health();
    assert_eq!((members["taxonomy_refused"].as_str(), impaired), (Some(error.as_str()), None));
    assert_eq!(categories(&app).await, ["fruit", "tools"]);
    assert_eq!(classify(&app, "apple").await, before);
    std::fs::remove_file(&path).unwrap();
    assert!(app.classification.reload().await.unwrap_err().to_string().contains("file not found"));
    assert_eq!(classify(&app, "apple").await, before);
}

#[tokio::test]
async fn c55_a_category_that_is_gone_keeps_its_place_unless_the_operator_says_otherwise() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.yaml");
    for stable in [true, false] {
        write(&path, &[("fruit", "apple"), ("tools", "hammer"), ("birds", "raven")]);
        let mut config = with_taxonomy(&path, ClassificationMethod::Hybrid);
        config.classification.stable_indices = stable;
        let app = app::build(&config).unwrap();
        assert_eq!(classify(&app, "raven").await["class"], 2);
        write(&path, &[("birds", "raven"), ("fruit", "apple")]);
        app.classification.reload().await.unwrap();
        if stable {
            assert_eq!(categories(&app).await, ["fruit", "tools", "birds"]);
            assert_eq!(classify(&app, "raven").await["class"], 2);
            // No text is assigned to it any more.
            let verdict = classify(&app, "hammer").await;
            assert_eq!(verdict["probabilities"][1], 0.0);
            assert_eq!(classify(&app, "tell me everything about hammers").await["probabilities"][1], 0.0);
        } else {
            assert_eq!(categories(&app).await, ["birds", "fruit"]);
            assert_eq!(classify(&app, "raven").await["class"], 0);
        }
    }
}

#[tokio::test]
async fn c59_x36_a_reload_forgets_every_answer() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.yaml");
    write(&path, &[("fruit", "apple"), ("tools", "hammer")]);
    let app = app::build(&with_taxonomy(&path, ClassificationMethod::Hybrid)).unwrap();
    assert_eq!(classify(&app, "apple").await["category"], "fruit");
    assert_eq!(classify(&app, "apple").await["category"], "fruit");
    // The word moves to the other category.
    write(&path, &[("fruit", "pear"), ("tools", "apple")]);
    app.classification.reload().await.unwrap();
    assert_eq!(classify(&app, "apple").await["category"], "tools");
}

const PROVIDERS: [&str; 2] = ["first", "second"];

/// A thousand reloads under mixed load. The two versions have the same names for different words, so that a result made
/// from both would show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z07_a_thousand_reloads_under_load_never_give_a_mixed_answer() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.yaml");
    let versions = [
        [("alpha", "apple"), ("beta", "hammer"), ("gamma", "raven")],
        [("alpha", "hammer"), ("beta", "raven"), ("gamma", "apple")],
    ];
    write_with(&path, &versions[0], PROVIDERS[0]);
    let mut config = with_taxonomy(&path, ClassificationMethod::Hybrid);
    config.classification.stable_indices = false;
    let app = Arc::new(app::build(&config).unwrap());
    let (done, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let (app, done, asked) = (app.clone(), done.clone(), asked.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let (batch, texts) = (caller % 2 == 0, ["apple", "hammer", "raven", "all about a raven"]);
                    let results = if batch {
                        let result = call(&app, "batch_categorize", json!({ "texts": texts })).await.unwrap();
                        tool_json(&result)["results"].as_array().unwrap().clone()
                    } else {
                        vec![classify(&app, texts[caller]).await]
                    };
                    let names: Vec<&str> = results.iter().map(|one| one["category"].as_str().unwrap()).collect();
                    // Each version has its own models; those for uncertain texts are the same in both.
                    for (one, text) in results.iter().zip(if batch { &texts[..] } else { &texts[caller..] }) {
                        let model = one["model"].as_str().unwrap();
                        let version = versions
                            .iter()
                            .position(|version| version.contains(&(one["category"].as_str().unwrap(), text)));
                        let fits = version.is_some_and(|version| model.starts_with(PROVIDERS[version]));
                        assert!(fits || model == "openai/gpt-4" || text.contains(' '), "{text}: {one}");
                    }
                    if batch {
                        let one_version = [["alpha", "beta", "gamma"], ["gamma", "alpha", "beta"]];
                        assert!(one_version.iter().any(|names_of| names_of[..] == names[..3]), "{names:?}");
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for reload in 0..1000 {
        let version = (reload + 1) % 2;
        // Words and models change with every reload; every fiftieth reload also has new examples to train on.
        let learned = reload / 50;
        let examples = |name: &str, _: &str| format!("the {name} of {learned} things, more {name}");
        write_examples(&path, &versions[version], PROVIDERS[version], examples);
        app.classification.reload().await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(asked.load(Ordering::Relaxed) > 100, "{asked:?}");
}

#[tokio::test]
async fn c55_places_that_are_kept_have_a_bound() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.yaml");
    let version = |start: usize| {
        let entry = |number: usize| format!("  - {{name: topic-{number}, words: [word{number}]}}\n");
        std::fs::write(&path, format!("categories:\n{}", (start..start + 1200).map(entry).collect::<String>()))
            .unwrap();
    };
    version(0);
    let app = app::build(&with_taxonomy(&path, ClassificationMethod::Rules)).unwrap();
    version(5000);
    let error = app.classification.reload().await.unwrap_err().to_string();
    assert!(error.contains("restart to release these"), "{error}");
    assert_eq!(categories(&app).await.len(), 1200);
}

#[tokio::test]
async fn t41_c54_what_was_impaired_is_tried_again_by_a_reload() {
    let folder = TempDir::new().unwrap();
    let (path, model) = (folder.path().join("t.yaml"), folder.path().join("model"));
    write(&path, &[("fruit", "apple"), ("tools", "hammer")]);
    let mut config = with_taxonomy(&path, ClassificationMethod::Hybrid);
    config.inference.embedding.path = Some(model.clone());
    let app = app::build(&config).unwrap();
    classify(&app, "all about hammers").await;
    assert!(app.classification.health().1.is_some());
    std::fs::create_dir(&model).unwrap();
    crate::small_model::TableModel::default().write(&model);
    app.classification.reload().await.unwrap();
    classify(&app, "all about hammers").await;
    assert_eq!(app.classification.health().1, None);
}

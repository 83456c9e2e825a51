//! Reading, validating, trying and saving the taxonomy through tools.

use std::path::PathBuf;
use std::time::Duration;

use corbie::app::{self, App};
use corbie::classify::Taxonomy;
use corbie::config::classification::ClassificationMethod;
use corbie_mcp::{Error, TrustLevel};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{SMALL_TAXONOMY, app, call, categories, classify, settings, tool_json, with_taxonomy};

/// A server with a taxonomy in a file.
struct TaxonomyServer {
    app: App,
    path: PathBuf,
    folder: TempDir,
}

fn taxonomy_server(method: ClassificationMethod) -> TaxonomyServer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, SMALL_TAXONOMY).unwrap();
    TaxonomyServer { app: app::build(&with_taxonomy(&path, method)).unwrap(), path, folder }
}

impl TaxonomyServer {
    async fn call_as(&self, trust: TrustLevel, tool: &str, arguments: Value) -> Result<Value, Error> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.app.server.request(trust, "tools/call", &params).await
    }

    async fn tool_json(&self, tool: &str, arguments: Value) -> Value {
        tool_json(&call(&self.app, tool, arguments).await.unwrap())
    }

    fn file_text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    /// Number of files in the folder.
    fn file_count(&self) -> usize {
        self.folder.path().read_dir().unwrap().count()
    }
}

/// The small taxonomy with one more category.
fn taxonomy_with_birds() -> String {
    let birds: Vec<&str> =
        vec!["a raven on the roof", "the owl hunts at night", "feathers of a crow", "nests of storks"];
    let examples: String = birds.iter().map(|example| format!("      - {example}\n")).collect();
    format!("{SMALL_TAXONOMY}  - name: birds\n    certain: ['^raven$']\n    examples:\n{examples}")
}

#[tokio::test]
async fn the_taxonomy_inside_is_told_as_a_file_that_could_be_saved() {
    let app = app();
    for trust in [TrustLevel::Untrusted, TrustLevel::Trusted] {
        let params = json!({ "name": "get_taxonomy", "arguments": {} });
        let found = tool_json(&app.server.request(trust, "tools/call", &params).await.unwrap());
        assert_eq!(Taxonomy::parse(found["text"].as_str().unwrap()).unwrap(), Taxonomy::builtin());
        assert_eq!((&found["path"], &found["writable"]), (&Value::Null, &json!(false)));
        assert!(
            found["not_writable_reason"].as_str().unwrap().contains("classification.taxonomy"),
            "{}",
            found["not_writable_reason"]
        );
        assert_eq!(found["categories"], 5);
        assert!(found["examples"].as_u64().unwrap() > 4000);
        assert!(found.get("problem").is_none() && found.get("external_server").is_none());
    }
}

#[tokio::test]
async fn the_text_and_path_of_a_file_are_for_trusted_callers() {
    let desk = taxonomy_server(ClassificationMethod::Hybrid);
    let found = desk.tool_json("get_taxonomy", json!({})).await;
    assert_eq!(found["text"], SMALL_TAXONOMY);
    assert_eq!(found["path"], desk.path.to_str().unwrap());
    assert_eq!((&found["writable"], &found["categories"], &found["examples"]), (&json!(true), &json!(3), &json!(24)));
    for trust in [TrustLevel::Untrusted, TrustLevel::Verified] {
        let others = tool_json(&desk.call_as(trust, "get_taxonomy", json!({})).await.unwrap());
        assert_eq!((&others["text"], &others["path"]), (&Value::Null, &Value::Null));
        assert_eq!((&others["version"], &others["writable"]), (&Value::Null, &json!(false)));
        assert!(!others.to_string().contains("t.yaml"), "{others}");
    }
}

#[tokio::test]
async fn a_mistake_in_the_file_is_told_while_the_former_one_is_in_use() {
    let desk = taxonomy_server(ClassificationMethod::Rules);
    std::fs::write(&desk.path, "categories: [{name: fruit, patterns: ['(']}]").unwrap();
    assert!(desk.app.classification.reload().await.is_err());
    let found = desk.tool_json("get_taxonomy", json!({})).await;
    assert!(found["problem"].as_str().unwrap().contains("t.yaml:1:"), "{found}");
    assert_eq!(found["categories"], 3);
    let others = tool_json(&desk.call_as(TrustLevel::Untrusted, "get_taxonomy", json!({})).await.unwrap());
    assert_eq!(others["problem"], "the taxonomy file has errors");
    std::fs::remove_file(&desk.path).unwrap();
    let found = desk.tool_json("get_taxonomy", json!({})).await;
    assert_eq!((&found["text"], &found["writable"]), (&Value::Null, &json!(false)));
    assert!(found["problem"].as_str().unwrap().contains("cannot read"), "{found}");
}

#[tokio::test]
async fn every_mistake_is_told_with_its_place_and_is_no_failure() {
    let desk = taxonomy_server(ClassificationMethod::Rules);
    let text = "remainder: others\ncategories:\n  - name: a\n    patterns: ['(']\n  - name: a\n";
    let result = call(&desk.app, "check_taxonomy", json!({ "text": text })).await.unwrap();
    assert_eq!(result["isError"], false);
    let found = tool_json(&result);
    assert_eq!(found["valid"], false);
    let places: Vec<(u64, u64)> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["line"].as_u64().unwrap(), problem["column"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [(1, 12), (4, 16), (5, 11)], "{found}");
    let misspelt = desk.tool_json("check_taxonomy", json!({ "text": "categories: [{nmae: a}]" })).await;
    assert!(misspelt["problems"].to_string().contains("did you mean `name`?"), "{misspelt}");
    let large = desk.tool_json("check_taxonomy", json!({ "text": "#".repeat((1 << 20) + 1) })).await;
    assert_eq!(large["valid"], false);
    assert!(large["problems"][0]["message"].as_str().unwrap().contains("1 MiB"), "{large}");
    assert_eq!((desk.file_text().as_str(), desk.file_count()), (SMALL_TAXONOMY, 1));
}

#[tokio::test]
async fn a_taxonomy_can_be_tried_before_it_is_saved_and_nobody_else_notices() {
    let desk = taxonomy_server(ClassificationMethod::Hybrid);
    let before = classify(&desk.app, "an owl at night").await;
    let texts = json!(["raven", "an owl hunts in the night", " ", "please send me an invoice"]);
    let found = desk.tool_json("check_taxonomy", json!({ "text": taxonomy_with_birds(), "trial_texts": texts })).await;
    assert_eq!(found["valid"], true, "{found}");
    assert_eq!(found["categories"][3], json!({ "name": "birds", "examples": 4, "patterns": 1, "words": 0 }));
    assert!(found["warnings"][0]["message"].as_str().unwrap().contains("`birds` has 4 example(s)"), "{found}");
    let tried = found["trial_results"].as_array().unwrap();
    assert_eq!(tried.len(), 4);
    assert_eq!((&tried[0]["category"], &tried[0]["method"]), (&json!("birds"), &json!("rules")));
    assert_eq!((&tried[1]["text"], &tried[1]["category"]), (&texts[1], &json!("birds")));
    let sum: f64 = tried[1]["probabilities"].as_object().unwrap().values().map(|each| each.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-3, "{tried:?}");
    assert_eq!(tried[1]["probabilities"]["birds"], tried[1]["confidence"]);
    assert!(tried[2]["error"].as_str().unwrap().contains("is empty") && tried[2].get("category").is_none());
    assert_eq!(tried[3]["category"], "billing");
    assert_eq!(categories(&desk.app).await, ["billing", "delivery", "general"]);
    assert_eq!(classify(&desk.app, "an owl at night").await, before);
    assert_eq!(desk.file_text(), SMALL_TAXONOMY);
    let too_many = call(&desk.app, "check_taxonomy", json!({ "text": SMALL_TAXONOMY, "trial_texts": vec!["a"; 21] }))
        .await
        .unwrap();
    assert_eq!(too_many["isError"], true);
}

#[tokio::test]
async fn a_trial_that_is_given_up_leaves_its_turn_to_others() {
    let desk = taxonomy_server(ClassificationMethod::Hybrid);
    let arguments = json!({ "text": taxonomy_with_birds(), "trial_texts": ["an owl hunts in the night"] });
    for _ in 0..12 {
        let given_up = desk.tool_json("check_taxonomy", arguments.clone());
        // Either outcome is fine here.
        let _ = tokio::time::timeout(Duration::from_millis(2), given_up).await;
    }
    let found = desk.tool_json("check_taxonomy", arguments).await;
    assert_eq!(found["trial_results"][0]["category"], "birds", "{found}");
}

#[tokio::test]
async fn what_is_saved_is_in_use_when_the_answer_comes() {
    let desk = taxonomy_server(ClassificationMethod::Hybrid);
    let version = desk.tool_json("get_taxonomy", json!({})).await["version"].clone();
    let saved = desk.tool_json("save_taxonomy", json!({ "text": taxonomy_with_birds(), "version": version })).await;
    assert_eq!((&saved["saved"], &saved["categories"]), (&json!(true), &json!(4)), "{saved}");
    assert_eq!(desk.file_text(), taxonomy_with_birds());
    let backup = saved["backup"].as_str().unwrap();
    assert!(backup.ends_with("t.yaml.bak-1"));
    assert_eq!(std::fs::read_to_string(backup).unwrap(), SMALL_TAXONOMY);
    assert_eq!(classify(&desk.app, "raven").await["category"], "birds");
    assert_eq!(classify(&desk.app, "the owl hunts at night").await["category"], "birds");
    let now = desk.tool_json("get_taxonomy", json!({})).await;
    assert_eq!((&now["version"], &now["text"]), (&saved["version"], &json!(taxonomy_with_birds())));
    assert_eq!(desk.file_count(), 2);
}

#[tokio::test]
async fn what_was_changed_meanwhile_is_not_overwritten() {
    let desk = taxonomy_server(ClassificationMethod::Rules);
    let version = desk.tool_json("get_taxonomy", json!({})).await["version"].clone();
    let theirs = format!("# mine\n{SMALL_TAXONOMY}");
    std::fs::write(&desk.path, &theirs).unwrap();
    let result =
        call(&desk.app, "save_taxonomy", json!({ "text": taxonomy_with_birds(), "version": version })).await.unwrap();
    assert_eq!(result["isError"], true);
    let refused = tool_json(&result);
    assert_eq!((&refused["saved"], &refused["reason"]), (&json!(false), &json!("conflict")));
    assert!(refused["error"].as_str().unwrap().contains("changed since it was read"), "{refused}");
    assert_eq!((desk.file_text(), desk.file_count()), (theirs, 1));
    assert_eq!(
        desk.tool_json("save_taxonomy", json!({ "text": taxonomy_with_birds() })).await["saved"],
        true,
        "without a version"
    );
}

#[tokio::test]
async fn the_first_save_replaces_the_built_in_taxonomy_by_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("corbie/taxonomy.yaml");
    let mut settings = settings();
    settings.classification.method = ClassificationMethod::Rules;
    settings.classification.new_taxonomy = Some(path.clone());
    let app = app::build(&settings).unwrap();
    let get = async |trust| {
        let params = json!({ "name": "get_taxonomy", "arguments": {} });
        tool_json(&app.server.request(trust, "tools/call", &params).await.unwrap())
    };
    assert_eq!(get(TrustLevel::Verified).await["writable"], false);
    let builtin = get(TrustLevel::Trusted).await;
    assert_eq!((&builtin["writable"], builtin.get("path")), (&json!(true), None));

    let save = async |text: &str, version: &Value| {
        tool_json(&call(&app, "save_taxonomy", json!({ "text": text, "version": version })).await.unwrap())
    };
    assert_eq!(save(SMALL_TAXONOMY, &json!("another")).await["reason"], "conflict");
    assert!(!path.exists());
    let saved = save(SMALL_TAXONOMY, &builtin["version"]).await;
    assert_eq!((&saved["saved"], &saved["categories"], &saved["backup"]), (&json!(true), &json!(3), &Value::Null));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), SMALL_TAXONOMY);

    let own = get(TrustLevel::Trusted).await;
    assert_eq!((&own["path"], &own["categories"]), (&json!(path.to_str().unwrap()), &json!(3)));
    let again = save(&taxonomy_with_birds(), &own["version"]).await;
    assert_eq!((&again["saved"], &again["categories"]), (&json!(true), &json!(4)));
}

#[tokio::test]
async fn what_has_mistakes_is_not_saved() {
    let desk = taxonomy_server(ClassificationMethod::Rules);
    for text in ["categories: [{name: a, certain: ['(']}]", "categories: [", "", "model: 7"] {
        let result = call(&desk.app, "save_taxonomy", json!({ "text": text })).await.unwrap();
        assert_eq!(result["isError"], true, "{text}");
        let refused = tool_json(&result);
        assert_eq!((&refused["saved"], &refused["reason"]), (&json!(false), &json!("invalid")), "{text}");
        assert!(!refused["problems"].as_array().unwrap().is_empty(), "{refused}");
    }
    assert_eq!((desk.file_text().as_str(), desk.file_count()), (SMALL_TAXONOMY, 1));
    assert_eq!(categories(&desk.app).await, ["billing", "delivery", "general"]);
}

#[tokio::test]
async fn only_trusted_callers_save_and_untrusted_ones_have_nothing_checked() {
    let desk = taxonomy_server(ClassificationMethod::Rules);
    for trust in [TrustLevel::Untrusted, TrustLevel::Verified] {
        let refused = desk.call_as(trust, "save_taxonomy", json!({ "text": taxonomy_with_birds() })).await.unwrap_err();
        assert!(matches!(refused, Error::TrustDenied { .. }), "{refused}");
    }
    let refused = desk.call_as(TrustLevel::Untrusted, "check_taxonomy", json!({ "text": SMALL_TAXONOMY })).await;
    assert!(matches!(refused, Err(Error::TrustDenied { .. })));
    assert!(desk.call_as(TrustLevel::Verified, "check_taxonomy", json!({ "text": SMALL_TAXONOMY })).await.is_ok());
    assert_eq!((desk.file_text().as_str(), desk.file_count()), (SMALL_TAXONOMY, 1));
}

#[tokio::test]
async fn without_a_file_saving_tells_what_to_do() {
    let result = call(&app(), "save_taxonomy", json!({ "text": SMALL_TAXONOMY })).await.unwrap();
    let refused = tool_json(&result);
    assert_eq!((&result["isError"], &refused["reason"]), (&json!(true), &json!("no_file")));
    assert!(refused["error"].as_str().unwrap().contains("classification.taxonomy"), "{refused}");
}

#[tokio::test]
async fn a_text_is_read_in_the_format_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    std::fs::write(&path, "[[categories]]\nname = 'a'\n").unwrap();
    let app = app::build(&with_taxonomy(&path, ClassificationMethod::Rules)).unwrap();
    let yaml = tool_json(&call(&app, "save_taxonomy", json!({ "text": SMALL_TAXONOMY })).await.unwrap());
    assert_eq!(yaml["reason"], "invalid");
    let toml = "[[categories]]\nname = 'a'\n[[categories]]\nname = 'b'\n";
    assert_eq!(tool_json(&call(&app, "save_taxonomy", json!({ "text": toml })).await.unwrap())["saved"], true);
    assert_eq!(categories(&app).await, ["a", "b"]);
}

#[tokio::test]
async fn a_category_whose_prompts_must_stay_cannot_be_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, SMALL_TAXONOMY).unwrap();
    let mut config = with_taxonomy(&path, ClassificationMethod::Rules);
    config.router.restricted_categories.insert("delivery".into());
    let app = app::build(&config).unwrap();
    let without = SMALL_TAXONOMY.replace("name: delivery", "name: shipping");
    for tool in ["check_taxonomy", "save_taxonomy"] {
        let found = tool_json(&call(&app, tool, json!({ "text": without })).await.unwrap());
        assert!(found["problems"][0]["message"].as_str().unwrap().contains("`delivery` is missing"), "{tool}: {found}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), SMALL_TAXONOMY);
    assert_eq!(
        tool_json(&call(&app, "save_taxonomy", json!({ "text": taxonomy_with_birds() })).await.unwrap())["saved"],
        true
    );
}

/// The watcher must not reload a saved file, nor miss a later manual change.
#[tokio::test]
async fn a_change_by_hand_after_saving_is_noticed() {
    let desk = taxonomy_server(ClassificationMethod::Rules);
    let following =
        tokio::spawn(corbie::classify::reload::watch(desk.app.classification.clone(), desk.app.server.clone()));
    assert_eq!(desk.tool_json("save_taxonomy", json!({ "text": taxonomy_with_birds() })).await["saved"], true);
    std::fs::write(&desk.path, format!("{}  - name: fish\n", taxonomy_with_birds())).unwrap();
    let seen = async {
        while categories(&desk.app).await.last().map(String::as_str) != Some("fish") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), seen).await.unwrap();
    following.abort();
}

#[tokio::test]
async fn where_a_server_elsewhere_sorts_prompts_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, SMALL_TAXONOMY).unwrap();
    let mut config = settings();
    config.classification.taxonomy = Some(path);
    config.classification.method = ClassificationMethod::Rules;
    config.classification.source = Some("mcp".into());
    config.classification.mcp_server =
        serde_json::from_value(json!({ "transport": "http", "url": "http://127.0.0.1:9/mcp" })).unwrap();
    let app = app::build(&config).unwrap();
    let found = tool_json(&call(&app, "get_taxonomy", json!({})).await.unwrap());
    assert!(found["external_server"].as_str().unwrap().contains("classification.mcp_server"), "{found}");
    for (tool, arguments) in
        [("check_taxonomy", json!({ "text": SMALL_TAXONOMY })), ("save_taxonomy", json!({ "text": SMALL_TAXONOMY }))]
    {
        let warned = tool_json(&call(&app, tool, arguments).await.unwrap());
        assert!(warned["warnings"].to_string().contains("classification.mcp_server"), "{tool}: {warned}");
    }
}

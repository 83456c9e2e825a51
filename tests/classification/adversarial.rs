use corbie::app::{self, App};
use corbie::classify::Taxonomy;
use corbie::config::classification::ClassificationMethod;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{app, call, classify, tool_json, with_taxonomy};

/// A failure in the format of the classification tools: a single `error` member.
#[track_caller]
fn assert_tool_error(result: &Value, contains: &str) {
    assert_eq!(result["isError"], true, "{result}");
    let told = tool_json(result);
    assert_eq!(told.as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
    assert!(told["error"].as_str().unwrap().contains(contains), "{told}");
    assert!(result.get("structuredContent").is_none(), "{result}");
}

#[tokio::test]
async fn c30_z03_a_text_that_is_missing_or_no_text_is_an_error_without_a_class() {
    let app = app();
    for arguments in [json!({}), json!({ "text": 5 }), json!({ "text": null }), json!({ "text": ["a"] })] {
        assert_tool_error(&call(&app, "classify_text", arguments).await.unwrap(), "text");
    }
    for text in ["", "   \n\t ", "\u{0}\u{1}"] {
        assert_tool_error(&call(&app, "classify_text", json!({ "text": text })).await.unwrap(), "is empty");
    }
    let wrong = json!({ "text": "hello", "with_probabilities": "yes" });
    assert_tool_error(&call(&app, "classify_text", wrong).await.unwrap(), "with_probabilities");
}

#[tokio::test]
async fn c31_a_text_that_is_too_long_is_an_error_and_never_cut() {
    let app = app();
    let longest = "why ".repeat(8192);
    assert_eq!(classify(&app, &longest).await["probabilities"].as_array().unwrap().len(), 5);
    assert_tool_error(
        &call(&app, "classify_text", json!({ "text": format!("{longest}?") })).await.unwrap(),
        "32768 characters",
    );
    let ten_megabytes = "x".repeat(10 << 20);
    assert_tool_error(
        &call(&app, "classify_text", json!({ "text": ten_megabytes })).await.unwrap(),
        "32768 characters",
    );
    let texts = vec!["a"; 257];
    assert_tool_error(&call(&app, "batch_categorize", json!({ "texts": texts })).await.unwrap(), "the maximum is 256");
}

#[tokio::test]
async fn c32_control_characters_change_no_verdict() {
    let app = app();
    let plain = classify(&app, "why is the sky blue").await;
    assert_eq!(
        classify(&app, "\u{feff}why is\u{0} the sky\u{7} blue\r\n").await["probabilities"],
        plain["probabilities"]
    );
}

#[tokio::test]
async fn mixed_scripts_and_code_are_classified_like_anything_else() {
    let app = app();
    for text in [
        "почему небо голубое",
        "什么是光合作用？",
        "ما هو عاصمة فرنسا",
        "a\u{301}\u{301}\u{301}\u{301}",
        "'; DROP TABLE users; --",
        "{{7*7}} ${jndi:ldap://x} <script>alert(1)</script>",
        "\u{202e}gnihtemos\u{202c}",
        "🙂🙂🙂",
    ] {
        let verdict = classify(&app, text).await;
        assert!(verdict["class"].as_u64().unwrap() < 5, "{text}");
    }
}

fn app_with_taxonomy(yaml: &str, method: ClassificationMethod) -> (App, TempDir) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, yaml).unwrap();
    (app::build(&with_taxonomy(&path, method)).unwrap(), folder)
}

#[track_caller]
fn assert_rejected(yaml: &str, mistakes: &[&str]) {
    let error = Taxonomy::parse(yaml).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().map(|line| line.strip_prefix("taxonomy:").unwrap()).collect();
    assert_eq!(lines, mistakes);
}

#[test]
fn every_mistake_in_a_taxonomy_is_told_with_its_line_and_column() {
    assert_rejected(
        r"categories:
  - name: a
    examples: [one, '']
    patterns: ['(open', ok]
  - name: a
    colour: red
    examples: 5
  - description: nameless
",
        &[
            "6:5: categories[1].colour: unknown setting",
            "7:15: categories[1].examples: must be a list, not a number",
            "8:5: categories[2]: requires the key `name`",
        ],
    );
    assert_rejected(
        r"categories:
  - name: a
    examples: [one, '']
    patterns: ['(open', ok]
  - name: a
    certain: ['(?:x{1000}){1000}']
    examples: [one, two]
remainder: b
",
        &[
            "3:21: categories[0].examples[1]: is empty",
            "4:16: categories[0].patterns[0]: is not a valid regular expression: unclosed group",
            "5:11: categories[1].name: duplicate name `a`: category 0 has the same name",
            "6:15: categories[1].certain[0]: is too large; use fewer or smaller repetitions",
            "7:16: categories[1].examples[0]: duplicates an example of `a`",
            "8:12: remainder: `b` is not a category",
        ],
    );
}

#[test]
fn a_taxonomy_without_categories_is_refused() {
    assert_rejected("{}", &["1:1: categories: needs at least one category with a `name`"]);
    assert_rejected("categories: []", &["1:13: categories: needs at least one category with a `name`"]);
    assert_rejected("categories: [{name: ' '}]", &["1:21: categories[0].name: is empty"]);
}

#[tokio::test]
async fn with_one_category_every_text_is_of_it() {
    let (app, _folder) =
        app_with_taxonomy("categories: [{name: only, examples: [a, b]}]", ClassificationMethod::Hybrid);
    let verdict = classify(&app, "anything").await;
    assert_eq!((&verdict["class"], &verdict["confidence"]), (&json!(0), &json!(1.0)));
    assert_eq!(app.classification.health().1, None);
}

#[tokio::test]
async fn categories_without_examples_are_known_by_what_they_are_called() {
    let yaml = "
categories:
  - {name: cooking, description: recipes and meals and kitchens}
  - {name: astronomy, description: stars and planets and telescopes}
  - {name: football, description: 'goals, matches and players of soccer'}";
    let (app, _folder) = app_with_taxonomy(yaml, ClassificationMethod::Hybrid);
    assert_eq!(classify(&app, "how do i bake bread").await["category"], "cooking");
    assert_eq!(classify(&app, "is saturn visible tonight").await["category"], "astronomy");
    assert_eq!(app.classification.snapshot().taxonomy.warnings().len(), 3);
}

#[tokio::test]
async fn two_thousand_categories_are_served() {
    let entry = |number: usize| {
        format!("  - {{name: topic-{number}, examples: ['question {number} of topic {number}', 'tell me {number}']}}\n")
    };
    let yaml = format!("categories:\n{}", (0..2000).map(entry).collect::<String>());
    let (app, _folder) = app_with_taxonomy(&yaml, ClassificationMethod::Hybrid);
    let verdict = classify(&app, "question 77 of topic 77").await;
    assert_eq!(verdict["probabilities"].as_array().unwrap().len(), 2000);
    assert_eq!(verdict["category"], "topic-77");
    let one_more = format!("{yaml}{}", entry(2000));
    assert!(Taxonomy::parse(&one_more).unwrap_err().to_string().contains("the maximum is 2000"));
}

#[tokio::test]
async fn expressions_that_would_run_away_elsewhere_are_answered_at_once() {
    let yaml =
        r"categories: [{name: a, patterns: ['^(([a-z])+.)+[A-Z]([a-z])+$', '(x+x+)+y', '(.*)*z']}, {name: general}]";
    let (app, _folder) = app_with_taxonomy(yaml, ClassificationMethod::Rules);
    let started = std::time::Instant::now();
    classify(&app, &format!("{}!", "x".repeat(30_000))).await;
    classify(&app, &"a".repeat(32_000)).await;
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
}

//! `corbie taxonomy`: check, new, train and suggest.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{ProcessOutput, TestCommand, corbie};

/// A folder that outlives the program, to inspect the files it left.
struct TaxonomyFolder(TempDir);

impl TaxonomyFolder {
    fn new() -> TaxonomyFolder {
        TaxonomyFolder(tempfile::tempdir().unwrap())
    }

    fn with(name: &str, content: impl AsRef<[u8]>) -> TaxonomyFolder {
        let folder = TaxonomyFolder::new();
        folder.write(name, content);
        folder
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Sorted file names.
    fn files(&self) -> Vec<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut files: Vec<String> = self.0.path().read_dir().unwrap().map(name).collect();
        files.sort();
        files
    }

    /// `corbie taxonomy`; each word with a dot is a file of the folder and becomes its path.
    fn setup(&self, arguments: &str) -> TestCommand {
        let path = |word: &str| if word.contains('.') { self.path(word) } else { word.to_owned() };
        arguments.split_whitespace().fold(corbie("taxonomy"), |setup, word| setup.argument(path(word)))
    }

    fn run(&self, arguments: &str) -> ProcessOutput {
        self.setup(arguments).run("")
    }
}

#[track_caller]
fn json(ended: &ProcessOutput) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[track_caller]
fn assert_succeeded(ended: ProcessOutput) -> ProcessOutput {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

#[track_caller]
fn assert_failed(ended: ProcessOutput, with: &str) -> ProcessOutput {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains(with), "{with:?} is missing: {ended:?}");
    ended
}

/// Examples of two clearly distinct categories, `count` of each.
fn separable_examples(count: usize) -> [Vec<String>; 2] {
    let cooking = ["soup", "bread", "rice", "cake", "stew", "pasta", "curry", "pie", "salad", "fish", "tofu", "beans"];
    let football = [
        "goal", "keeper", "referee", "league", "striker", "penalty", "cup", "match", "team", "coach", "pitch",
        "offside",
    ];
    let texts = |words: [&str; 12], sentence: fn(&str, usize) -> String| {
        (0..count).map(|index| sentence(words[index % 12], index / 12)).collect()
    };
    [
        texts(cooking, |word, round| {
            format!("{} I cook {word} in the oven for dinner", ["how do", "when should"][round % 2])
        }),
        texts(football, |word, round| {
            format!("{} the football {word} on Saturday", ["who watched", "tell me about"][round % 2])
        }),
    ]
}

fn taxonomy(categories: &[(&str, &[String])]) -> String {
    let categories: Vec<Value> =
        categories.iter().map(|(name, examples)| json!({ "name": name, "examples": examples })).collect();
    json!({ "categories": categories }).to_string()
}

/// A small taxonomy without warnings.
fn small_taxonomy() -> String {
    let [cooking, football] = separable_examples(6);
    taxonomy(&[("cooking", &cooking), ("football", &football)])
}

// === check ===

const RULES: &str = "categories:
  - {name: a, words: [one, two], patterns: ['x+'], certain: ['^y$'], examples: [p, q, r, s, t]}
  - {name: b, examples: [u]}
  - {name: c}
";

#[test]
fn check_prints_counts_and_warnings() {
    let folder = TaxonomyFolder::with("my.yaml", RULES);
    let ended = assert_succeeded(folder.run("check my.yaml"));
    let file = folder.path("my.yaml");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], format!("{file}: 3 categories, 6 examples, 4 patterns and words"));
    assert!(lines[1..].iter().any(|line| line.contains("`c` has no examples")), "{ended:?}");
    assert!(
        lines[1..].iter().any(|line| line.contains("`b` has 1 example(s); add more (20 or more are recommended)")),
        "{ended:?}"
    );
    assert_eq!(ended.stderr, "");
}

#[test]
fn check_prints_json() {
    let folder = TaxonomyFolder::with("my.yaml", RULES);
    let told = json(&assert_succeeded(folder.run("check --json my.yaml")));
    assert_eq!(told["file"], folder.path("my.yaml"));
    assert_eq!(told["examples"], 6);
    assert_eq!(told["categories"][0], json!({ "name": "a", "examples": 5, "patterns": 2, "words": 2 }));
    assert_eq!(told["categories"].as_array().unwrap().len(), 3);
    assert_eq!(told["warnings"].as_array().unwrap().len(), 2);
}

#[test]
fn check_lists_all_errors_with_positions() {
    let folder = TaxonomyFolder::with(
        "my.yaml",
        "categories:\n  - name: a\n    patterns: ['(', ok]\n  - name: a\n  - nmae: b\nremainder: 7\n",
    );
    let file = folder.path("my.yaml");
    let ended = assert_failed(folder.run("check my.yaml"), &format!("{file}:5:5: categories[2].nmae"));
    assert!(ended.stderr.contains(&format!("{file}:6:12: remainder")), "{ended:?}");
    assert!(ended.stderr.contains("did you mean `name`?"), "{ended:?}");

    folder.write("my.yaml", "categories:\n  - name: a\n    patterns: ['(', ok]\n  - name: a\n");
    let ended = assert_failed(folder.run("check my.yaml"), &format!("{file}:3:16: categories[0].patterns[0]"));
    assert!(
        ended
            .stderr
            .contains(&format!("{file}:4:11: categories[1].name: duplicate name `a`: category 0 has the same name")),
        "{ended:?}"
    );
}

#[test]
fn check_json_has_positions_of_errors() {
    let folder = TaxonomyFolder::with("my.yaml", "categories:\n  - nmae: a\n");
    let ended = folder.run("check --json my.yaml");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""), "{ended:?}");
    let mistakes = json(&ended)["errors"].clone();
    let mistake = mistakes.as_array().unwrap().iter().find(|mistake| mistake["path"] == "categories[0].nmae").unwrap();
    assert_eq!((&mistake["line"], &mistake["column"]), (&json!(2), &json!(5)));
    assert!(mistake["message"].as_str().unwrap().ends_with("did you mean `name`?"), "{mistake}");

    let missing = json(&folder.run("check --json no.yaml"))["errors"][0].clone();
    assert_eq!((&missing["line"], &missing["path"]), (&Value::Null, &json!("")));
}

#[test]
fn check_rejects_other_files() {
    let folder = TaxonomyFolder::new();
    for (name, content, mistake) in [
        ("empty.yaml", &b""[..], "needs at least one category"),
        ("none.yaml", b"categories: []\n", "needs at least one category"),
        ("list.yaml", b"- a\n", "must be a mapping"),
        ("latin.yaml", b"categories:\n  - name: caf\xe9\n", "latin.yaml:2:14: is not UTF-8 text"),
        ("broken.yaml", b"categories: [\n", "is not valid YAML"),
        ("my.txt", b"categories: []\n", "use `.yaml`, `.yml`, `.toml` or `.json`"),
        (
            "twice.yaml",
            b"categories: [{name: a, examples: [x]}, {name: b, examples: [x]}]",
            "duplicates an example of `a`",
        ),
    ] {
        folder.write(name, content);
        assert_failed(folder.run(&format!("check {name}")), mistake);
    }
    let missing = assert_failed(
        folder.run("check no.yaml"),
        "no.yaml: file not found; create one with `corbie taxonomy new --out ",
    );
    assert_eq!(missing.stderr.lines().count(), 1, "{missing:?}");
}

#[test]
fn check_warns_about_an_outdated_trained_file() {
    let folder = TaxonomyFolder::with("my.json", small_taxonomy());
    assert_succeeded(folder.run("train my.json"));
    let fits = assert_succeeded(folder.run("check my.json"));
    assert_eq!(fits.stdout.lines().count(), 1, "{fits:?}");

    folder.write("my.json", small_taxonomy().replace("cook soup", "cook a soup"));
    let stale = assert_succeeded(folder.run("check my.json"));
    let remark = format!("`{}` does not match these examples", folder.path("my.trained"));
    assert!(stale.stdout.contains(&remark), "{stale:?}");
    folder.write("my.trained", "nonsense");
    assert!(folder.run("check my.json").stdout.contains(&remark));
}

// === new ===

#[test]
fn new_prints_a_valid_starter_taxonomy() {
    let folder = TaxonomyFolder::new();
    let printed = assert_succeeded(folder.run("new"));
    let written = assert_succeeded(folder.run("new --out my.yaml"));
    assert_eq!(printed.stdout, folder.read("my.yaml"));
    assert_eq!(written.stdout, format!("{}: 3 categories, 18 examples\n", folder.path("my.yaml")));
    let checked = assert_succeeded(folder.run("check my.yaml"));
    assert_eq!(checked.stdout.lines().count(), 1, "{checked:?}");
    assert_eq!(folder.files(), ["my.yaml"]);
}

#[test]
fn new_overwrites_only_with_force() {
    let folder = TaxonomyFolder::with("my.yaml", "mine");
    assert_failed(
        folder.run("new --out my.yaml"),
        "my.yaml` already exists; choose another name, or overwrite it with `--force`",
    );
    assert_eq!(folder.read("my.yaml"), "mine");
    assert_succeeded(folder.run("new --out my.yaml --force"));
    assert!(folder.read("my.yaml").contains("categories:"));
    assert_eq!(folder.files(), ["my.yaml"]);
}

#[test]
fn new_requires_a_yaml_name() {
    let folder = TaxonomyFolder::new();
    let wrong = folder.run("new --out my.json");
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{wrong:?}");
    assert!(wrong.stderr.contains("the name must end with `.yaml`"), "{wrong:?}");
    assert_failed(folder.run("new --out no.such/my.yaml"), "my.yaml` cannot be written");
    assert_eq!(folder.files(), [""; 0]);
}

const TEXTS: &str = r#"{"text": "pay the bill", "label": "billing"}
{"category": "technical", "text": "it \"crashes\": why?\nline two"}
{"text": "hello", "label": null}
{"text": " pay the bill ", "class": "billing", "id": 7}

{"text": "true", "label": "billing"}
{"text": "is it broken", "label": "technical"}
{"text": "is it broken", "label": "billing"}
"#;

#[test]
fn new_reads_jsonl() {
    let folder = TaxonomyFolder::with("data.jsonl", TEXTS);
    let ended = assert_succeeded(folder.run("new data.jsonl --out my.yaml"));
    assert_eq!(ended.stdout, format!("{}: 2 categories, 3 examples\n", folder.path("my.yaml")));
    let yaml = folder.read("my.yaml");
    let categories = r#"categories:
  - name: billing
    examples:
      - pay the bill
      - "true"
  - name: technical
    examples:
      - "it \"crashes\": why?\nline two"
"#;
    assert!(yaml.ends_with(categories), "{yaml}");
    assert_eq!(json(&folder.run("check --json my.yaml"))["examples"], 3);
    let data = folder.path("data.jsonl");
    for told in [
        &format!("{data}:8: \"is it broken\" is `billing` here and `technical` in line 7; skipped"),
        &format!("{data}: 1 text skipped: without a label"),
        &format!("{data}: 1 text skipped: duplicates"),
    ] {
        assert!(ended.stderr.contains(told), "{told:?} is missing: {ended:?}");
    }
    assert!(assert_succeeded(folder.run("new data.jsonl")).stdout.ends_with(categories));
}

#[test]
fn new_reads_csv() {
    let folder =
        TaxonomyFolder::with("data.csv", "\u{feff}id,Label,Text\r\n1,a,\"one, two\"\r\n2,,three\r\n3,b,four\r\n");
    let ended = assert_succeeded(folder.run("new data.csv"));
    let categories = "  - name: a\n    examples:\n      - one, two\n  - name: b\n    examples:\n      - four\n";
    assert!(ended.stdout.ends_with(categories), "{ended:?}");
    assert!(ended.stderr.contains("1 text skipped: without a label"), "{ended:?}");
}

#[test]
fn new_limits_examples_per_category() {
    let lines: String = (0..1005).map(|index| format!("{{\"text\":\"text {index}\",\"label\":\"a\"}}\n")).collect();
    let folder = TaxonomyFolder::with("data.jsonl", lines);
    let count = |arguments: &str| assert_succeeded(folder.run(arguments)).stdout.matches("- text ").count();
    assert_eq!(count("new data.jsonl"), 1000);
    assert_eq!(count("new data.jsonl --limit 7"), 7);
    assert_eq!(count("new data.jsonl --limit 9999"), 1005);
}

#[test]
fn new_reports_the_line_of_an_error_and_writes_nothing() {
    let folder = TaxonomyFolder::new();
    let long = "x".repeat(101);
    for (name, content, mistake) in [
        (
            "broken.jsonl",
            "{\"text\":\"a\",\"label\":\"b\"}\n{\"text\":\n".as_bytes(),
            "broken.jsonl:2: is not {\"text\"",
        ),
        ("latin.jsonl", b"{\"text\":\"caf\xe9\",\"label\":\"b\"}\n", "latin.jsonl:1: is not"),
        ("number.jsonl", b"{\"text\":\"a\",\"label\":3}\n", "number.jsonl:1: is not"),
        ("empty.jsonl", b"", "empty.jsonl` has no labelled text"),
        ("unlabelled.jsonl", b"{\"text\":\"a\",\"lable\":\"b\"}\n", "unlabelled.jsonl` has no labelled text"),
        (
            "name.jsonl",
            format!("\n{{\"text\":\"a\",\"label\":\"{long}\"}}\n").as_bytes(),
            "name.jsonl:2: the label is longer",
        ),
        ("headless.csv", b"hello,a\nthere,b\n", "headless.csv:1: has no column `text`"),
        ("unlabelled.csv", b"text,lable\nthere,b\n", "unlabelled.csv:1: has no column `label`"),
        ("wide.csv", b"text,label\none, two,a\n", "wide.csv:2: has 3 columns, but the header has 2"),
        ("latin.csv", b"text,label\ncaf\xe9,a\n", "latin.csv:2: is not UTF-8 text"),
        ("data.txt", b"text,label\na,b\n", "use `.jsonl` or `.csv`"),
    ] {
        folder.write(name, content);
        assert_failed(folder.run(&format!("new {name} --out my.yaml")), mistake);
    }
    assert_failed(folder.run("new no.jsonl"), "no.jsonl`: file not found");
    assert!(!Path::new(&folder.path("my.yaml")).exists());
}

#[test]
fn new_limits_reported_contradictions() {
    let line = |index: usize, label: &str| format!("{{\"text\":\"text {index}\",\"label\":\"{label}\"}}\n");
    let lines: String = (0..50).map(|index| line(index, "a") + &line(index, "b")).collect();
    let ended = assert_succeeded(TaxonomyFolder::with("data.jsonl", lines).run("new data.jsonl"));
    assert_eq!(ended.stderr.matches("; skipped").count(), 20, "{ended:?}");
    assert!(ended.stderr.contains("30 more texts with several labels"), "{ended:?}");
}

// === train ===

#[test]
fn train_stores_the_classifier_next_to_the_taxonomy() {
    let folder = TaxonomyFolder::with("my.json", small_taxonomy());
    let ended = assert_succeeded(folder.run("train my.json"));
    let start = format!("{}: trained on 12 examples of 2 categories in ", folder.path("my.json"));
    assert!(ended.stdout.starts_with(&start), "{ended:?}");
    assert!(ended.stdout.ends_with(" kB)\n") && ended.stdout.contains(&folder.path("my.trained")), "{ended:?}");
    assert_eq!(ended.stderr, "", "progress is for terminals");
    assert_eq!(folder.files(), ["my.json", "my.trained"]);

    let told = json(&assert_succeeded(folder.run("train --json my.json")));
    let size = Path::new(&folder.path("my.trained")).metadata().unwrap().len();
    assert_eq!((&told["examples"], &told["categories"], &told["bytes"]), (&json!(12), &json!(2), &json!(size)));
    assert_eq!(told["trained"], folder.path("my.trained"));
    assert!(told["seconds"].is_f64() && told["model"].is_string(), "{told}");
}

#[test]
fn train_skips_a_single_category() {
    let folder = TaxonomyFolder::with("my.yaml", "categories: [{name: a, examples: [x, y]}]");
    let ended = assert_succeeded(folder.run("train my.yaml"));
    assert!(ended.stdout.contains("a taxonomy with one category needs no training"), "{ended:?}");
    assert_eq!(json(&assert_succeeded(folder.run("train --json my.yaml")))["trained"], Value::Null);
    assert_eq!(folder.files(), ["my.yaml"]);
}

#[test]
fn train_writes_nothing_for_an_invalid_taxonomy() {
    let folder = TaxonomyFolder::with("my.yaml", "categories: [{name: a}, {name: a}]");
    assert_failed(folder.run("train my.yaml"), "category 0 has the same name");
    assert_failed(folder.run("train no.yaml"), "no.yaml: file not found");
    assert_eq!(folder.files(), ["my.yaml"]);
}

#[cfg(unix)]
#[test]
fn train_that_is_interrupted_changes_nothing() {
    let [mut cooking, mut football] = separable_examples(12);
    for texts in [&mut cooking, &mut football] {
        *texts = (0..4000).map(|index| format!("{} number {index}", texts[index % 12])).collect();
    }
    let folder = TaxonomyFolder::with("my.json", taxonomy(&[("cooking", &cooking), ("football", &football)]));
    folder.write("my.trained", "what was there before");
    let mut running = folder.setup("train my.json --log-level debug").start();
    running.wait_for_log("model loaded");
    running.signal("INT");
    assert_ne!(running.wait().code, Some(0));
    assert_eq!(folder.files(), ["my.json", "my.trained"]);
    assert_eq!(folder.read("my.trained"), "what was there before");
}

#[test]
fn train_uses_the_model_of_the_settings() {
    let folder = TaxonomyFolder::with("my.json", small_taxonomy());
    folder.write("corbie.yaml", format!("inference: {{embedding: {{path: '{}'}}}}\n", folder.path("no-model")));
    assert_failed(folder.run("train my.json --config corbie.yaml"), "no-model");
    assert_eq!(folder.files(), ["corbie.yaml", "my.json"]);
}

// === suggest ===

#[test]
fn suggest_finds_an_example_in_the_wrong_category() {
    let [mut cooking, football] = separable_examples(24);
    cooking.push("did you see the football goal on Saturday".into());
    let folder = TaxonomyFolder::with("my.json", taxonomy(&[("cooking", &cooking), ("football", &football)]));
    let told = json(&assert_succeeded(folder.run("suggest --json my.json")));
    let suspect = &told["mislabelled"][0];
    assert_eq!(suspect["text"], "did you see the football goal on Saturday", "{told}");
    assert_eq!((&suspect["category"], &suspect["predicted"]), (&json!("cooking"), &json!("football")));
    assert!(suspect["confidence"].as_f64().unwrap() >= 0.7, "{told}");
    assert_eq!((&told["examples"], &told["held_out"]), (&json!(49), &json!(49)));
    assert!(told["accuracy"].as_f64().unwrap() > 0.9, "{told}");

    let shown = assert_succeeded(folder.run("suggest my.json"));
    assert!(shown.stdout.contains("49 examples of 2 categories; cross-validation accuracy 9"), "{shown:?}");
    assert!(shown.stdout.contains("cooking → football: did you see the football goal on Saturday"), "{shown:?}");
    assert_eq!(shown.stderr, "", "progress is for terminals");
}

#[test]
fn suggest_lists_weak_categories_up_to_the_limit() {
    let folder = TaxonomyFolder::with("my.json", small_taxonomy());
    let told = json(&assert_succeeded(folder.run("suggest --json --most 1 my.json")));
    assert_eq!(told["counts"]["weak_categories"], 2, "{told}");
    assert_eq!(told["weak_categories"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["weak_categories"][0]["examples"], 6);
    let shown = assert_succeeded(folder.run("suggest --most 1 my.json"));
    assert!(shown.stdout.contains("Weak categories; add more examples:"), "{shown:?}");
    assert!(shown.stdout.contains("and 1 more; `--limit 2` shows all"), "{shown:?}");
}

#[test]
fn suggest_skips_categories_too_small_for_cross_validation() {
    let [cooking, football] = separable_examples(6);
    let categories: [(&str, &[String]); 4] =
        [("cooking", &cooking), ("football", &football), ("one", &["hm".to_owned()]), ("none", &[])];
    let folder = TaxonomyFolder::with("my.json", taxonomy(&categories));
    let told = json(&assert_succeeded(folder.run("suggest --json my.json")));
    assert_eq!(told["held_out"], 12, "{told}");
    let weak = told["weak_categories"].as_array().unwrap();
    assert_eq!((&weak[0]["category"], &weak[0]["recall"]), (&json!("none"), &Value::Null), "{told}");
    assert_eq!((&weak[1]["category"], &weak[1]["recall"]), (&json!("one"), &Value::Null), "{told}");

    folder.write("my.json", taxonomy(&[("a", &["x".to_owned()]), ("b", &["y".to_owned()])]));
    let told = json(&assert_succeeded(folder.run("suggest --json my.json")));
    assert_eq!((&told["held_out"], &told["accuracy"]), (&json!(0), &Value::Null));
    assert!(assert_succeeded(folder.run("suggest my.json")).stdout.contains("too few examples for cross-validation"));
}

#[test]
fn suggest_errors_have_advice() {
    let folder = TaxonomyFolder::with("my.yaml", "categories: [{name: a, examples: [x, y]}]");
    assert_failed(folder.run("suggest my.yaml"), "a taxonomy with one category cannot be evaluated; add a second");
    assert_failed(
        folder.run("suggest no.yaml"),
        "no.yaml: file not found; create one with `corbie taxonomy new --out ",
    );
}

#[test]
fn examples_are_sanitized() {
    let [mut cooking, football] = separable_examples(24);
    cooking.push("the football \u{1b}[31m goal on Saturday".into());
    let folder = TaxonomyFolder::with("my.json", taxonomy(&[("cooking", &cooking), ("football", &football)]));
    let shown = assert_succeeded(folder.run("suggest my.json"));
    assert!(shown.stdout.contains("the football  [31m goal") && !shown.stdout.contains('\u{1b}'), "{shown:?}");
}

/// Set `CORBIE_BLESS=1` to update the file after a change, and review the diff.
#[test]
fn the_schema_of_taxonomy_files_is_committed_and_printed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/taxonomy.schema.json");
    let printed = corbie("taxonomy schema").run("").stdout;
    if std::env::var_os("CORBIE_BLESS").is_some() {
        std::fs::write(path, &printed).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap_or_default() == printed, "run the tests with CORBIE_BLESS=1");
}

//! `corbie eval-search` on a small set written by the test.

use serde_json::{Value, json};

use crate::process::{ProcessOutput, corbie};

const PASSAGES: [(&str, &str); 8] = [
    ("refunds", "We return the full price within thirty days if the goods are unused and the receipt is enclosed."),
    ("shipping", "Parcels leave our warehouse in Hamburg on the next working day and arrive within a week."),
    ("owls", "Owls hunt at night; soft feathers let them fly without a sound above the meadow."),
    ("bread", "Knead the dough for ten minutes, let it rise in a warm place, then bake it until the crust is brown."),
    ("glaciers", "A glacier forms where more snow falls in winter than melts in summer, year after year."),
    ("violins", "The front of a violin is carved from spruce, its back and ribs from maple."),
    ("tides", "The pull of the moon raises the sea twice a day along most coasts."),
    ("vaccines", "A vaccine shows the immune system a harmless part of a virus, so that it remembers it."),
];
const QUERIES: [(&str, &str); 4] = [
    ("can I get my money back for something I bought", "refunds"),
    ("from which wood is a violin made", "violins"),
    ("why does the water at the beach go up and down", "tides"),
    ("night birds of prey", "owls"),
];

/// Runs the program with a folder `set` of these files.
fn run(arguments: &str, files: &[(&str, String)]) -> ProcessOutput {
    let mut setup = corbie(arguments);
    std::fs::create_dir(setup.folder().join("set")).unwrap();
    for (name, content) in files {
        setup = setup.file(&format!("set/{name}"), content);
    }
    setup.run("")
}

fn dataset_files() -> [(&'static str, String); 3] {
    let line = |id: &str, text: &str| json!({ "_id": id, "text": text }).to_string() + "\n";
    let corpus = PASSAGES.iter().map(|(id, text)| line(id, text)).collect();
    let queries = QUERIES.iter().enumerate().map(|(at, (text, _))| line(&at.to_string(), text)).collect();
    let qrels = QUERIES.iter().enumerate().map(|(at, (_, id))| format!("{at}\t{id}\t1\n")).collect();
    [("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels.tsv", qrels)]
}

#[test]
fn k59_paraphrases_find_their_passages_and_absent_topics_find_nothing() {
    let ended = run("eval-search set --json --out-of-domain", &dataset_files());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let set = &report["sets"][0];
    assert_eq!((&set["passages"], &set["chunks"], &set["queries"]), (&json!(8), &json!(8), &json!(4)));
    assert_eq!(set["scores"]["hybrid"], json!({ "ndcg": 1.0, "recall": 1.0 }), "{report}");
    let nothing = |kind: &str| {
        let rows = set["empty_results"].as_array().unwrap();
        let row = rows.iter().find(|row| row["kind"] == kind).unwrap();
        row["empty_results"].as_f64().unwrap() / row["queries"].as_f64().unwrap()
    };
    assert_eq!(nothing("answered"), 0.0);
    assert!(nothing("answers_removed") >= 0.75, "{report}");
    assert!(nothing("small_talk") >= 0.8, "{report}");
}

#[test]
fn one_way_may_be_asked_for_and_the_questions_limited() {
    let ended = run("eval-search set --mode lexical --limit 2 --top 3", &dataset_files());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("nDCG@3"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("Relevance"), "{}", ended.stdout);
    let figures = ended.stdout.lines().find(|line| line.starts_with("set ")).unwrap();
    assert_eq!(figures.split_whitespace().nth(3), Some("2"), "{}", ended.stdout);
}

#[test]
fn x51_the_model_of_relevance_is_fitted_to_a_set() {
    let ended = run("eval-search set --fit-relevance", &dataset_files());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for part in ["HYBRID_MODEL = [", "VECTOR_MODEL = [", "LEXICAL_MODEL = [", "expected calibration error: 0.000"] {
        assert!(ended.stdout.contains(part), "{}", ended.stdout);
    }
    assert!(ended.stdout.contains("4 passages   median 0.000   p95 0.000"), "{}", ended.stdout);
}

#[test]
fn mistakes_in_a_set_are_told_before_anything_is_measured() {
    let broken = [("corpus.jsonl", "nonsense\n".to_owned())];
    let ended = run("eval-search set", &broken);
    assert_ne!(ended.code, Some(0));
    assert!(ended.stderr.contains("corpus.jsonl:1: is not"), "{}", ended.stderr);
    let ended = run("eval-search nowhere", &[]);
    assert!(ended.stderr.contains("cannot read `nowhere/corpus.jsonl`"), "{}", ended.stderr);
}

//! `corbie embed` and `corbie models`.

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{ProcessOutput, corbie};
use crate::small_model::{TableModel, WIDTH};

fn embeddings(ended: &ProcessOutput) -> Vec<Value> {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn vector(embedding: &Value) -> Vec<f64> {
    embedding["vector"].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn a_text_becomes_a_line_of_numbers() {
    let ended = corbie("embed hello").run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let numbers: Vec<f64> = ended.stdout.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let length: f64 = numbers.iter().map(|number| number * number).sum();
    assert_eq!(numbers.len(), 384);
    assert!((length - 1.0).abs() < 1e-4, "{length}");
}

#[test]
fn lines_of_stdin_and_arguments_give_the_same_vectors_in_order() {
    let texts = ["the first text", "a second one, somewhat longer than the first", "third"];
    let piped = embeddings(&corbie("embed --json").run(&format!("{}\r\n", texts.join("\n"))));
    let mut typed = corbie("embed --json");
    for text in texts {
        typed = typed.argument(text);
    }
    let typed = embeddings(&typed.run(""));
    assert_eq!(piped.len(), 3);
    assert_eq!(piped, typed);
    assert_eq!(piped[0]["model"], "all-MiniLM-L6-v2-int8");
    assert_eq!((piped[0]["tokens"].as_u64(), piped[0]["truncated"].as_bool()), (Some(5), Some(false)));
}

#[test]
fn a_text_that_was_cut_and_one_in_another_language_are_told_of() {
    let long = "word ".repeat(400);
    let ended = corbie("embed --json").run(&format!("{long}\nКак мне сбросить пароль, если нет телефона?\n"));
    let embedded = embeddings(&ended);
    assert_eq!(embedded[0]["truncated"], true);
    assert!(ended.stderr.contains("text 1 was truncated to the model's limit of 256 tokens"), "{ended:?}");
    assert!(ended.stderr.contains("text 2 is in Russian"), "{ended:?}");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let empty = corbie("embed").run("fine\n\nfine\n");
    assert_eq!(empty.code, Some(1));
    assert!(empty.stderr.contains("text 2 is empty"), "{empty:?}");
    let nothing = corbie("embed").run("");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "no lines, no vectors");
}

#[test]
fn models_tells_licence_hash_and_size() {
    let ended = corbie("models").run("");
    assert_eq!(ended.code, Some(0));
    for part in
        ["all-MiniLM-L6-v2-int8", "Apache-2.0", "MIT", "model.onnx.data", "sha256 edae90c6", "Embedding model in use"]
    {
        assert!(ended.stdout.contains(part), "`{part}` is missing: {}", ended.stdout);
    }
    let json: Value = serde_json::from_str(&corbie("models --json").run("").stdout).unwrap();
    assert_eq!(json["inside"][0]["dimension"], 384);
    assert_eq!(json["configured"], Value::Null);
}

#[test]
fn another_model_is_a_matter_of_configuration() {
    let folder = TempDir::new().unwrap();
    TableModel::default().write(folder.path());
    let path = folder.path().to_str().unwrap();
    let with = |arguments: &str| {
        corbie(arguments)
            .variable("CORBIE_INFERENCE__EMBEDDING__PATH", path)
            .variable("CORBIE_INFERENCE__EMBEDDING__POOLING", "cls")
    };
    let embedded = embeddings(&with("embed --json one").run(""));
    assert_eq!(vector(&embedded[0]).len(), WIDTH);
    assert!(!embedded[0]["model"].as_str().unwrap().contains("MiniLM"), "{embedded:?}");
    let shown = with("models").run("");
    assert!(shown.stdout.contains(&format!("from {path}, {WIDTH} dimensions")), "{shown:?}");

    std::fs::write(folder.path().join("model.onnx"), "no model").unwrap();
    for command in ["embed one", "models", "models --json"] {
        let ended = with(command).run("");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("cannot use `"), "{ended:?}");
    }
    let json: Value = serde_json::from_str(&with("models --json").run("").stdout).unwrap();
    assert!(json["configured"]["error"].as_str().unwrap().contains("cannot use"), "{json}");
}

#[test]
fn settings_for_another_model_are_not_passed_over_in_silence() {
    for command in ["embed hello", "models"] {
        let ended = corbie(command)
            .variable("CORBIE_INFERENCE__EMBEDDING__POOLING", "cls")
            .variable("CORBIE_INFERENCE__EMBEDDING__MAX_TOKENS", "64")
            .run("");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let unused = "`inference.embedding.pooling`, `inference.embedding.max_tokens` has no effect";
        assert_eq!(ended.stderr.matches(unused).count(), 1, "{ended:?}");
    }
}

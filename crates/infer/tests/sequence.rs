//! Sequence classifiers from a directory: loading, inference and rejection.

use std::fs;

use corbie_infer::{Error, MAX_TEXT_BYTES, SequenceClassifier};
use corbie_test_support::onnx_model::{self, ScorerModel, TableModel, WIDTH, WORDS};
use serde_json::{Value, json};
use tempfile::TempDir;

fn folder(scorer: &ScorerModel) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    scorer.write(folder.path());
    folder
}

fn open(folder: &TempDir) -> Result<SequenceClassifier, Error> {
    SequenceClassifier::open(folder.path(), None, 1)
}

fn opened(scorer: &ScorerModel) -> SequenceClassifier {
    open(&folder(scorer)).expect("opens")
}

fn write(folder: &TempDir, file: &str, text: &[u8]) {
    fs::write(folder.path().join(file), text).expect("written");
}

fn with_tokenizer(folder: &TempDir, change: impl FnOnce(&mut Value)) {
    let mut tokenizer: Value = serde_json::from_str(&onnx_model::tokenizer()).expect("JSON");
    change(&mut tokenizer);
    write(folder, "tokenizer.json", tokenizer.to_string().as_bytes());
}

#[track_caller]
fn assert_refused(folder: &TempDir, reason: &str) {
    let error = open(folder).expect_err(reason);
    assert!(matches!(error, Error::BadModel { .. } | Error::NoModel { .. }), "{error:?}");
    assert!(error.to_string().contains(reason), "`{error}` does not say `{reason}`");
}

#[track_caller]
fn assert_config_refused(config: &Value, reason: &str) {
    let folder = folder(&ScorerModel::default());
    write(&folder, "config.json", config.to_string().as_bytes());
    assert_refused(&folder, reason);
    assert_refused(&folder, "config.json");
}

/// Expected output of a scorer for these words, computed by hand.
fn expected(scorer: &ScorerModel, words: &[&str]) -> Vec<f32> {
    let rows = words.iter().map(|word| scorer.table.rows[WORDS.iter().position(|known| known == word).unwrap_or(0)]);
    let mut means = [0.0; WIDTH];
    for row in rows {
        (0..WIDTH).for_each(|column| means[column] += row[column] / words.len() as f32);
    }
    let score = |(weights, bias): (&[f32; WIDTH], &f32)| {
        weights.iter().zip(means).map(|(weight, mean)| weight * mean).sum::<f32>() + bias
    };
    let exps: Vec<f32> = scorer.weights.iter().zip(&scorer.bias).map(|pair| score(pair).exp()).collect();
    exps.iter().map(|exp| exp / exps.iter().sum::<f32>()).collect()
}

#[track_caller]
fn assert_close(left: &[f32], right: &[f32]) {
    assert_eq!(left.len(), right.len());
    for (a, b) in left.iter().zip(right) {
        assert!((a - b).abs() < 1e-5, "{left:?} is not {right:?}");
    }
}

#[test]
fn probabilities_are_what_was_computed_by_hand() {
    let scorer = ScorerModel::default();
    let classifier = opened(&scorer);
    for words in [&["one"][..], &["two", "three", "two"], &["three", "nobody-knows", "one", "one"]] {
        let probabilities = classifier.classify(&words.join(" ")).expect("classifies");
        assert_close(&probabilities, &expected(&scorer, &[&["[CLS]"], words, &["[SEP]"]].concat()));
        assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{probabilities:?}");
    }
    // The tokens 1, 3, 3 and 2 have the means 2.25, 1, 5.75 and -1.125, hence the scores 1.125, 1.21875 and -0.6875.
    assert_close(&classifier.classify("one one").expect("classifies"), &[0.442178, 0.485638, 0.072184]);
}

#[test]
fn labels_stand_in_the_order_of_the_outputs() {
    let classifier = opened(&ScorerModel::default());
    assert_eq!(classifier.labels(), ["billing", "refund", "other"]);

    // In string order, `10` comes before `2`.
    let names: Vec<String> = (0..12).map(|output| format!("class {}", 11 - output)).collect();
    let by_output: serde_json::Map<_, _> =
        names.iter().enumerate().map(|(output, name)| (output.to_string(), name.as_str().into())).collect();
    let weights = (0..12).map(|output| [0.0, output as f32 / 10.0, 0.0, 0.0]).collect();
    let scorer = ScorerModel {
        weights,
        bias: vec![0.0; 12],
        config: json!({ "id2label": by_output }),
        ..ScorerModel::default()
    };
    let classifier = opened(&scorer);
    assert_eq!(classifier.labels(), names);
    assert!(classifier.classify("one").expect("classifies").is_sorted());
}

#[test]
fn the_output_called_logits_is_taken_before_the_first() {
    let scorer = ScorerModel { shows_means: true, ..ScorerModel::default() };
    let probabilities = opened(&scorer).classify("two").expect("classifies");
    assert_close(&probabilities, &expected(&scorer, &["[CLS]", "two", "[SEP]"]));
}

#[test]
fn the_only_output_is_taken_whatever_it_is_called() {
    let scorer = ScorerModel {
        table: TableModel { output: "scores", pools: true, ..TableModel::default() },
        ..ScorerModel::default()
    };
    let probabilities = opened(&scorer).classify("two").expect("classifies");
    assert_close(&probabilities, &expected(&scorer, &["[CLS]", "two", "[SEP]"]));
}

#[test]
fn probabilities_are_the_same_whatever_the_threads() {
    let folder = folder(&ScorerModel::default());
    let with = |threads| {
        let classifier = SequenceClassifier::open(folder.path(), None, threads).expect("opens");
        classifier.classify("one two three").expect("classifies")
    };
    assert_eq!(with(0), with(1));
    assert_eq!(with(1), with(3));
}

#[test]
fn everything_that_decides_has_a_part_in_the_id() {
    let plain = folder(&ScorerModel::default());
    let id = |max_tokens| SequenceClassifier::open(plain.path(), max_tokens, 1).expect("opens").id().clone();
    let before = id(None);
    let name = plain.path().file_name().expect("a name").to_string_lossy();
    assert!(before.as_str().starts_with(&format!("{name}@")), "{before}");
    assert_eq!(before, id(None));
    assert_ne!(before, id(Some(9)));

    let changes: [(&str, Vec<u8>); 3] = [
        ("model.onnx", ScorerModel { bias: vec![0.0; 3], ..ScorerModel::default() }.onnx()),
        ("tokenizer.json", onnx_model::tokenizer().replace("three", "four").into()),
        ("config.json", br#"{ "id2label": { "0": "refund", "1": "billing", "2": "other" } }"#.to_vec()),
    ];
    for (file, changed) in changes {
        let unchanged = fs::read(plain.path().join(file)).expect("read");
        write(&plain, file, &changed);
        assert_ne!(before, id(None), "{file}");
        write(&plain, file, &unchanged);
        assert_eq!(before, id(None), "{file}");
    }
    write(&plain, "config.json", br#"{ "id2label": { "2": "other", "1": "refund", "0": "billing" }, "layers": 6 }"#);
    assert_eq!(before, id(None), "what does not decide has no part in it");
}

#[test]
fn missing_files_are_named() {
    for (file, reason) in [
        ("model.onnx", "`model.onnx` is missing"),
        ("tokenizer.json", "cannot read `tokenizer.json`"),
        ("config.json", "missing; copy it"),
    ] {
        let folder = folder(&ScorerModel::default());
        fs::remove_file(folder.path().join(file)).expect("removed");
        assert_refused(&folder, reason);
        assert_refused(&folder, file);
    }
    let nowhere = SequenceClassifier::open("/nowhere/at/all".as_ref(), None, 1).expect_err("not there");
    assert!(nowhere.to_string().contains("not a folder"), "{nowhere}");
}

#[test]
fn broken_files_are_refused() {
    for (file, content, reason) in [
        ("model.onnx", &b"not a model"[..], "model.onnx"),
        ("tokenizer.json", b"{}", "`tokenizer.json`"),
        ("tokenizer_config.json", b"[1", "tokenizer_config.json"),
        ("config.json", b"", "config.json"),
        ("config.json", b"{ \"id2label\"", "config.json"),
        ("config.json", b"\xff\xfe", "config.json"),
        ("config.json", b"7", "config.json"),
    ] {
        let folder = folder(&ScorerModel::default());
        write(&folder, file, content);
        assert_refused(&folder, reason);
    }
    let folder = folder(&ScorerModel::default());
    fs::remove_file(folder.path().join("config.json")).expect("removed");
    fs::create_dir(folder.path().join("config.json")).expect("created");
    assert_refused(&folder, "not a file");
}

#[test]
fn labels_that_are_not_there_are_refused() {
    assert_config_refused(&json!({}), "no `id2label`");
    assert_config_refused(&json!({ "id2label": null }), "no `id2label`");
    assert_config_refused(&json!({ "id2label": ["no", "yes"] }), "expected a map");
    assert_config_refused(&json!({ "id2label": { "0": 1, "1": 2 } }), "expected a string");
}

#[test]
fn labels_with_a_gap_are_refused() {
    let gap = |output: &str, count: usize| format!("has {count} labels but none for `{output}`");
    for (labels, output) in [
        (json!({ "0": "a", "2": "b", "3": "c" }), "1"),
        (json!({ "1": "a", "2": "b", "3": "c" }), "0"),
        (json!({ "0": "a", "1": "b", "01": "c" }), "2"),
        (json!({ "0": "a", "1": "b", "-1": "c" }), "2"),
        (json!({ "0": "a", "1": "b", "two": "c" }), "2"),
        (json!({ "0": "a", "1": "b", "18446744073709551616": "c" }), "2"),
    ] {
        assert_config_refused(&json!({ "id2label": labels }), &gap(output, 3));
    }
}

#[test]
fn labels_that_are_empty_or_the_same_are_refused() {
    let check = |labels: [&str; 3], reason: &str| {
        let [a, b, c] = labels;
        assert_config_refused(&json!({ "id2label": { "0": a, "1": b, "2": c } }), reason);
    };
    check(["a", "", "c"], "the label of `1` in `id2label` is empty");
    check(["a", "b", " \n"], "the label of `2` in `id2label` is empty");
    check(["a", "b", "a"], "duplicate label `a`");
}

#[test]
fn fewer_than_two_labels_are_refused() {
    assert_config_refused(&json!({ "id2label": {} }), "has 0 labels; at least two are required");
    assert_config_refused(&json!({ "id2label": { "0": "LABEL_0" } }), "has 1 labels; at least two are required");
}

#[test]
fn classes_that_do_not_exclude_each_other_are_refused() {
    let config =
        |kind: Value| json!({ "id2label": { "0": "billing", "1": "refund", "2": "other" }, "problem_type": kind });
    for kind in ["multi_label_classification", "regression"] {
        assert_config_refused(&config(kind.into()), &format!("unsupported `problem_type` `{kind}`"));
    }
    for kind in ["single_label_classification".into(), Value::Null] {
        let scorer = ScorerModel { config: config(kind), ..ScorerModel::default() };
        assert!(open(&folder(&scorer)).is_ok());
    }
}

#[test]
fn another_number_of_outputs_than_labels_is_refused() {
    for count in [2, 4] {
        let by_output: serde_json::Map<_, _> =
            (0..count).map(|output: usize| (output.to_string(), format!("class {output}").into())).collect();
        let scorer = ScorerModel { config: json!({ "id2label": by_output }), ..ScorerModel::default() };
        assert_refused(&folder(&scorer), &format!("output shape is [1, 3], expected [1, {count}] for the {count}"));
    }
}

#[test]
fn a_model_that_scores_each_token_is_refused() {
    let table = TableModel { output: "logits", pools: false, ..TableModel::default() };
    let folder = folder(&ScorerModel { table, ..ScorerModel::default() });
    assert_refused(&folder, "output shape is [1, 6, 3]");
    assert_refused(&folder, "export the model and its `config.json` together, for `text-classification`");
    // With one token, the output looks like one row per text.
    with_tokenizer(&folder, |json| {
        json["post_processor"] = Value::Null;
        json["pre_tokenizer"] = Value::Null;
    });
    assert_refused(&folder, "output shape is [1, 1, 3]");
}

#[test]
fn a_model_that_gives_vectors_is_refused() {
    let folder = folder(&ScorerModel::default());
    write(&folder, "model.onnx", &TableModel::default().onnx());
    assert_refused(&folder, "output shape is [1, 6, 4]");
}

#[test]
fn a_model_that_wants_more_than_tokens_is_refused() {
    let table = |inputs| TableModel { output: "logits", pools: true, inputs, ..TableModel::default() };
    let scorer = ScorerModel { table: table(vec!["input_ids", "pixel_values"]), ..ScorerModel::default() };
    assert_refused(&folder(&scorer), "unsupported input `pixel_values`; export it for `text-classification`");

    let inputs = vec!["input_ids", "attention_mask", "token_type_ids", "position_ids"];
    let scorer = ScorerModel { table: table(inputs), ..ScorerModel::default() };
    let probabilities = opened(&scorer).classify("two").expect("classifies");
    assert_close(&probabilities, &expected(&scorer, &["[CLS]", "two", "[SEP]"]));
}

#[test]
fn a_model_that_fits_its_tokenizer_badly_is_refused() {
    let table = TableModel { rows: vec![[1.0; WIDTH]; 2], output: "logits", pools: true, ..TableModel::default() };
    assert_refused(&folder(&ScorerModel { table, ..ScorerModel::default() }), "cannot run");
}

#[test]
fn numbers_that_are_not_finite_are_an_error_and_never_probabilities() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut scorer = ScorerModel::default();
        scorer.table.rows[3] = [bad; WIDTH];
        let classifier = opened(&scorer);
        assert!(classifier.classify("two").is_ok());
        let error = classifier.classify("two one").expect_err("no probabilities");
        assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
        assert!(error.to_string().contains("its values are not finite"), "{error}");

        // Otherwise no text could be classified.
        let scorer = ScorerModel { bias: vec![0.0, bad, 0.0], ..ScorerModel::default() };
        assert_refused(&folder(&scorer), "its values are not finite");
    }
}

#[test]
fn huge_scores_are_probabilities_all_the_same() {
    let bias = vec![f32::MAX / 2.0, f32::MIN / 2.0, 0.0];
    let classifier = opened(&ScorerModel { bias, ..ScorerModel::default() });
    assert_eq!(classifier.classify("one").expect("classifies"), [1.0, 0.0, 0.0]);
}

#[test]
fn a_text_with_nothing_in_it_is_the_senders_fault() {
    let classifier = opened(&ScorerModel::default());
    for text in ["", " ", "\n\t "] {
        let error = classifier.classify(text).expect_err("empty");
        assert!(matches!(error, Error::EmptyText { index: 0 }), "{error:?}");
        assert!(error.invalid_text().is_some());
    }
}

#[test]
fn a_long_text_is_cut_where_the_model_stops_reading() {
    let scorer = ScorerModel::default();
    let folder = folder(&scorer);
    let classifier = SequenceClassifier::open(folder.path(), Some(5), 1).expect("opens");
    assert_eq!(classifier.max_tokens(), 5);
    let probabilities = classifier.classify(&format!("one two three{}", " two".repeat(100_000))).expect("classifies");
    assert_close(&probabilities, &expected(&scorer, &["[CLS]", "one", "two", "three", "[SEP]"]));

    let error = classifier.classify(&"one ".repeat(MAX_TEXT_BYTES / 4 + 1)).expect_err("too long");
    assert!(matches!(error, Error::TextTooLong { .. }), "{error:?}");
}

#[test]
fn the_owner_says_how_much_is_read_then_the_tokenizer() {
    let folder = folder(&ScorerModel::default());
    let most = |said| SequenceClassifier::open(folder.path(), said, 1).map(|classifier| classifier.max_tokens());
    assert_eq!(most(None).expect("opens"), 512);
    write(&folder, "tokenizer_config.json", br#"{ "model_max_length": 128 }"#);
    assert_eq!(most(None).expect("opens"), 128);
    assert_eq!(most(Some(64)).expect("opens"), 64);
    assert_eq!(most(Some(usize::MAX)).expect("opens"), 8192);
    for too_few in [0, 2] {
        let error = most(Some(too_few)).expect_err("no room for a text");
        assert!(error.to_string().contains("leaves no room after 2 special tokens"), "{error}");
    }
}

#[test]
fn a_tokenizer_that_panics_is_an_error() {
    let folder = folder(&ScorerModel::default());
    with_tokenizer(&folder, |json| json["post_processor"]["special_tokens"] = json!({}));
    assert_refused(&folder, "panic");

    // The charsmap has only 128 entries, and the tokenizer reads beyond it.
    let characters = format!("AAIA{}", "AAAA".repeat(171));
    with_tokenizer(&folder, |json| {
        json["normalizer"] = json!({ "type": "Precompiled", "precompiled_charsmap": characters });
    });
    let classifier = open(&folder).expect("the words it is tried with are fine");
    let before = classifier.classify("one").expect("classifies");
    let error = classifier.classify("one \u{e9}").expect_err("panics");
    assert!(matches!(error, Error::Run { .. }), "{error:?}");
    assert_eq!(classifier.classify("one").expect("nothing is broken by it"), before);
}

#[test]
fn a_model_cut_off_anywhere_is_an_error_and_never_a_panic() {
    let whole = ScorerModel::default().onnx();
    let folder = folder(&ScorerModel::default());
    for end in 0..whole.len() {
        write(&folder, "model.onnx", &whole[..end]);
        // Truncation may leave a smaller valid model; its probabilities must then be valid.
        if let Ok(classifier) = open(&folder) {
            let probabilities = classifier.classify("one").expect("classifies");
            assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-6, "cut at {end}");
        }
    }
}

//! Models from a directory: loading, pooling and rejection.

use std::fs;

use corbie_infer::{Embedder, Error, ModelDirOptions, Pooling, Purpose, TokenizedText};
use corbie_test_support::onnx_model::{self, TableModel, WIDTH, WORDS, bytes, number, varint};
use tempfile::TempDir;

fn folder(table: &TableModel) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    table.write(folder.path());
    folder
}

fn open(folder: &TempDir, options: ModelDirOptions) -> Result<Embedder, Error> {
    Embedder::open(folder.path(), &options, 1)
}

/// A model with external weights.
fn folder_outside(table: &TableModel) -> TempDir {
    let folder = folder(table);
    let values = table.values();
    write(&folder, "model.onnx", &table.onnx_outside("model.onnx_data", 0, values.len() as u64));
    write(&folder, "model.onnx_data", &values);
    folder
}

fn write(folder: &TempDir, file: &str, bytes: &[u8]) {
    fs::write(folder.path().join(file), bytes).expect("written");
}

/// Modifies a valid tokenizer.
fn with_tokenizer(folder: &TempDir, change: impl FnOnce(&mut serde_json::Value)) {
    let mut tokenizer: serde_json::Value = serde_json::from_str(&onnx_model::tokenizer()).expect("JSON");
    change(&mut tokenizer);
    write(folder, "tokenizer.json", tokenizer.to_string().as_bytes());
}

fn assert_refused(folder: &TempDir, reason: &str) {
    let error = open(folder, ModelDirOptions::default()).expect_err(reason);
    assert!(matches!(error, Error::BadModel { .. } | Error::NoModel { .. }), "{error:?}");
    assert!(error.to_string().contains(reason), "`{error}` does not say `{reason}`");
}

/// Expected output of a table model for these words, computed by hand.
fn expected(table: &TableModel, words: &[&str], pooling: Pooling) -> Vec<f32> {
    let rows: Vec<_> =
        words.iter().map(|word| table.rows[WORDS.iter().position(|known| known == word).unwrap_or(0)]).collect();
    let pooled: Vec<f32> = match pooling {
        Pooling::Cls => rows[0].to_vec(),
        Pooling::LastToken => rows[rows.len() - 1].to_vec(),
        Pooling::Mean => {
            (0..WIDTH).map(|column| rows.iter().map(|row| row[column]).sum::<f32>() / rows.len() as f32).collect()
        }
    };
    let length = pooled.iter().map(|number| number * number).sum::<f32>().sqrt();
    pooled.iter().map(|number| number / length).collect()
}

fn assert_close(left: &[f32], right: &[f32]) {
    assert_eq!(left.len(), right.len());
    for (a, b) in left.iter().zip(right) {
        assert!((a - b).abs() < 1e-6, "{left:?} is not {right:?}");
    }
}

#[test]
fn every_pooling_gives_what_was_computed_by_hand() {
    let table = TableModel::default();
    let folder = folder(&table);
    for pooling in [Pooling::Mean, Pooling::Cls, Pooling::LastToken] {
        let embedder =
            open(&folder, ModelDirOptions { pooling: Some(pooling), ..ModelDirOptions::default() }).expect("opens");
        let embedding = embedder.embed("two three two", Purpose::Passage).expect("embeds");
        assert_close(&embedding.vector, &expected(&table, &["[CLS]", "two", "three", "two", "[SEP]"], pooling));
        assert_eq!((embedding.tokens, embedding.truncated, embedder.dimension()), (5, false, WIDTH));
    }
}

#[test]
fn prefixes_stand_before_queries_and_passages() {
    let table = TableModel::default();
    let folder = folder(&table);
    let options = ModelDirOptions {
        query_prefix: Some("query: ".into()),
        passage_prefix: Some("passage: ".into()),
        ..ModelDirOptions::default()
    };
    let embedder = open(&folder, options).expect("opens");
    for (purpose, prefix) in [(Purpose::Query, "query:"), (Purpose::Passage, "passage:")] {
        let embedding = embedder.embed("one", purpose).expect("embeds");
        assert_close(&embedding.vector, &expected(&table, &["[CLS]", prefix, "one", "[SEP]"], Pooling::Mean));
    }
    assert!(matches!(embedder.embed(" ", Purpose::Query), Err(Error::EmptyText { index: 0 })), "a prefix is no text");
}

#[test]
fn what_the_exporter_wrote_is_read_and_the_owner_has_the_last_word() {
    let table = TableModel::default();
    let folder = folder(&table);
    fs::create_dir(folder.path().join("1_Pooling")).expect("created");
    for (file, json) in [
        ("1_Pooling/config.json", r#"{ "pooling_mode_cls_token": true, "word_embedding_dimension": 4 }"#),
        ("sentence_bert_config.json", r#"{ "max_seq_length": 6 }"#),
        ("config_sentence_transformers.json", r#"{ "prompts": { "query": "query: ", "document": "" } }"#),
    ] {
        fs::write(folder.path().join(file), json).expect("written");
    }
    let embedder = open(&folder, ModelDirOptions::default()).expect("opens");
    assert_eq!(embedder.max_tokens(), 6);
    let embedding = embedder.embed("one two one two one two", Purpose::Query).expect("embeds");
    assert_close(&embedding.vector, &expected(&table, &["[CLS]"], Pooling::Cls));
    assert_eq!((embedding.tokens, embedding.truncated), (6, true));

    let options =
        ModelDirOptions { pooling: Some(Pooling::LastToken), max_tokens: Some(9), ..ModelDirOptions::default() };
    let embedder = open(&folder, options).expect("opens");
    assert_eq!(embedder.max_tokens(), 9);
    assert!(!embedder.embed("one two one two one two", Purpose::Query).expect("embeds").truncated);
}

#[test]
fn a_model_that_pools_by_itself_is_taken_at_its_word() {
    let table =
        TableModel { inputs: vec!["input_ids"], output: "sentence_embedding", pools: true, ..TableModel::default() };
    let folder = folder(&table);
    let embedder = open(&folder, ModelDirOptions::default()).expect("opens");
    let embedding = embedder.embed("three", Purpose::Passage).expect("embeds");
    assert_close(&embedding.vector, &expected(&table, &["[CLS]", "three", "[SEP]"], Pooling::Mean));
}

#[test]
fn two_models_never_share_an_id() {
    let (one, other) =
        (TableModel::default(), TableModel { rows: vec![[1.0, 2.0, 3.0, 4.0]; WORDS.len()], ..TableModel::default() });
    let (first, second) = (folder(&one), folder(&other));
    let id = |folder: &TempDir, options| open(folder, options).expect("opens").id().clone();
    let plain = id(&first, ModelDirOptions::default());
    assert_eq!(plain, id(&first, ModelDirOptions::default()));
    assert_ne!(plain, id(&second, ModelDirOptions::default()));
    assert_ne!(plain, id(&first, ModelDirOptions { pooling: Some(Pooling::Cls), ..ModelDirOptions::default() }));

    let embed = |folder: &TempDir| {
        open(folder, ModelDirOptions::default()).expect("opens").embed("one", Purpose::Passage).expect("embeds")
    };
    assert_eq!(embed(&first).similarity(&embed(&second)), None);
    assert!(embed(&first).similarity(&embed(&first)).is_some_and(|same| (same - 1.0).abs() < 1e-6));
}

#[test]
fn a_model_that_gives_nan_or_nothing_is_an_error_and_never_a_vector() {
    for bad in [f32::NAN, f32::INFINITY, 0.0] {
        let mut table = TableModel::default();
        table.rows[3] = [bad; WIDTH];
        let folder = folder(&table);
        let options = ModelDirOptions { pooling: Some(Pooling::LastToken), ..ModelDirOptions::default() };
        // Makes the last token a word.
        with_tokenizer(&folder, |json| json["post_processor"] = serde_json::Value::Null);
        let embedder = open(&folder, options).expect("the word it is tried with is fine");
        assert!(embedder.embed("two", Purpose::Passage).is_ok());
        let error = embedder.embed_many(&["two", "one"], Purpose::Passage).expect_err("no vector");
        assert!(matches!(error, Error::Unusable { index: 1, .. }), "{error}");
    }
}

#[test]
fn what_is_no_model_is_refused_with_the_reason() {
    let good = TableModel::default();
    let check = |break_it: &dyn Fn(&TempDir), reason: &str| {
        let folder = folder(&good);
        break_it(&folder);
        let error = open(&folder, ModelDirOptions::default()).expect_err(reason).to_string();
        assert!(error.contains(reason), "`{error}` does not say `{reason}`");
    };
    check(&|folder| fs::remove_file(folder.path().join("model.onnx")).expect("removed"), "`model.onnx` is missing");
    check(
        &|folder| fs::remove_file(folder.path().join("tokenizer.json")).expect("removed"),
        "cannot read `tokenizer.json`",
    );
    check(&|folder| write(folder, "tokenizer.json", b"{}"), "`tokenizer.json`");
    check(&|folder| write(folder, "model.onnx", b"not a model"), "cannot use");
    check(&|folder| write(folder, "model.onnx", &good.onnx()[..100]), "cannot use");
    check(&|folder| write(folder, "sentence_bert_config.json", b"[1"), "sentence_bert_config.json");
    let extra = TableModel { inputs: vec!["input_ids", "past_key_values.0.key"], ..TableModel::default() };
    check(&|folder| write(folder, "model.onnx", &extra.onnx()), "unsupported input `past_key_values.0.key`");
    let image = TableModel { inputs: vec!["pixel_values"], ..TableModel::default() };
    check(&|folder| write(folder, "model.onnx", &image.onnx()), "input");
    let small = TableModel { rows: vec![[1.0; WIDTH]; 2], ..TableModel::default() };
    check(&|folder| write(folder, "model.onnx", &small.onnx()), "cannot run");

    let nowhere = Embedder::open("/nowhere/at/all".as_ref(), &ModelDirOptions::default(), 1).expect_err("not there");
    assert!(nowhere.to_string().contains("not a folder"), "{nowhere}");
}

#[test]
fn a_model_cut_off_anywhere_is_an_error_and_never_a_panic() {
    let table = TableModel::default();
    let whole = table.onnx();
    let folder = folder(&table);
    for end in 0..whole.len() {
        fs::write(folder.path().join("model.onnx"), &whole[..end]).expect("written");
        // Truncation may leave a smaller valid model; its vectors must then be valid.
        if let Ok(embedder) = open(&folder, ModelDirOptions::default()) {
            let vector = embedder.embed("one", Purpose::Passage).map(|embedding| embedding.vector);
            assert!(vector.is_ok_and(|vector| vector.iter().all(|number| number.is_finite())), "cut at {end}");
        }
    }
}

#[test]
fn weights_in_another_file_are_read_and_have_a_part_in_the_id() {
    let table = TableModel::default();
    let folder = folder_outside(&table);
    let embedder = open(&folder, ModelDirOptions::default()).expect("opens");
    let embedding = embedder.embed("three", Purpose::Passage).expect("embeds");
    assert_close(&embedding.vector, &expected(&table, &["[CLS]", "three", "[SEP]"], Pooling::Mean));

    let other = TableModel { rows: vec![[1.0, 2.0, 3.0, 4.0]; WORDS.len()], ..TableModel::default() };
    write(&folder, "model.onnx_data", &other.values());
    assert_ne!(embedder.id(), open(&folder, ModelDirOptions::default()).expect("opens").id());
    write(&folder, "model.onnx_data", &table.values());
    assert_eq!(embedder.id(), open(&folder, ModelDirOptions::default()).expect("opens").id());
}

#[test]
fn weights_that_are_not_where_the_model_says_are_refused() {
    let table = TableModel::default();
    let length = table.values().len() as u64;
    let places = [
        ("model.onnx_data", 0, 1 << 62, "are truncated"),
        ("model.onnx_data", 0, length + 1, "are truncated"),
        ("model.onnx_data", 1, length, "are truncated"),
        ("model.onnx_data", u64::MAX, length, "are truncated"),
        ("other.onnx_data", 0, length, "cannot read"),
        ("folder.data", 0, length, "are not a file"),
        ("link.data", 0, length, "outside the model folder"),
        ("../outside.data", 0, length, "outside the model folder"),
        ("/dev/zero", 0, length, "outside the model folder"),
        ("./model.onnx_data", 0, length, "outside the model folder"),
        ("", 0, length, "outside the model folder"),
        ("huge.data", 0, 1 << 38, "larger than 32 GB"),
    ];
    for (file, offset, length, reason) in places {
        let outer = TempDir::new().expect("a folder");
        fs::write(outer.path().join("outside.data"), table.values()).expect("written");
        let folder = TempDir::new_in(outer.path()).expect("a folder");
        table.write(folder.path());
        write(&folder, "model.onnx_data", &table.values());
        fs::create_dir(folder.path().join("folder.data")).expect("created");
        std::os::unix::fs::symlink("../outside.data", folder.path().join("link.data")).expect("linked");
        let huge = fs::File::create(folder.path().join("huge.data")).expect("created");
        huge.set_len(1 << 38).expect("a file without a disk behind it");
        write(&folder, "model.onnx", &table.onnx_outside(file, offset, length));
        assert_refused(&folder, reason);
    }
    let folder = folder(&table);
    let network = fs::File::options().write(true).open(folder.path().join("model.onnx")).expect("opens");
    network.set_len((4 << 30) + 1).expect("a file without a disk behind it");
    assert_refused(&folder, "larger than 4 GB");
}

#[test]
fn a_tokenizer_that_panics_is_an_error() {
    let sequence = |name: &str| serde_json::json!({ "Sequence": { "id": name, "type_id": 0 } });
    let folder = folder(&TableModel::default());
    with_tokenizer(&folder, |json| json["post_processor"]["special_tokens"] = serde_json::json!({}));
    assert!(matches!(open(&folder, ModelDirOptions::default()), Err(Error::BadModel { .. })));
    with_tokenizer(&folder, |json| json["post_processor"]["single"] = serde_json::json!([sequence("B")]));
    assert!(matches!(open(&folder, ModelDirOptions::default()), Err(Error::BadModel { .. })));
}

#[test]
fn a_tokenizer_that_gives_nothing_or_too_much_is_an_error() {
    let sequence = serde_json::json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let folder = folder(&TableModel::default());
    with_tokenizer(&folder, |json| json["post_processor"]["single"] = serde_json::json!([]));
    assert_refused(&folder, "is empty");

    with_tokenizer(&folder, |json| json["post_processor"]["single"] = serde_json::json!([sequence, sequence]));
    let options = ModelDirOptions { max_tokens: Some(16), ..ModelDirOptions::default() };
    let embedder = open(&folder, options).expect("opens");
    // It doubles texts with and without special tokens.
    assert_eq!(embedder.embed("one two one two", Purpose::Passage).expect("embeds").tokens, 16);
    let error =
        embedder.embed_many(&["one", "one two one two one"], Purpose::Passage).expect_err("twenty are too many");
    assert!(matches!(error, Error::Tokenize { index: 1, .. }), "{error}");

    let fine = embedder.tokenize("one", Purpose::Passage, 0).expect("read");
    for ids in [vec![], vec![1; 17]] {
        let error = embedder.run(&[fine.clone(), TokenizedText { ids, truncated: false }]).expect_err("no vector");
        assert!(matches!(error, Error::Tokenize { index: 1, .. }), "{error}");
    }
}

#[test]
fn a_model_that_gives_rows_of_no_numbers_is_refused() {
    for pools in [false, true] {
        let table = TableModel { pools, ..TableModel::default() };
        let folder = folder(&table);
        write(&folder, "model.onnx", &table.onnx_without_width());
        assert_refused(&folder, "unexpected output shape");
    }
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    for (file, reason) in [
        ("tokenizer.json", "not a file"),
        ("sentence_bert_config.json", "not a file"),
        ("model.onnx", "`model.onnx` is missing"),
        ("model.onnx_data", "are not a file"),
    ] {
        let folder = folder_outside(&TableModel::default());
        let path = folder.path().join(file);
        if path.exists() {
            fs::remove_file(&path).expect("removed");
        }
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("runs").success());
        assert_refused(&folder, reason);
    }
}

#[test]
fn a_pooling_there_is_not_is_refused_until_the_owner_sets_one() {
    let folder = folder(&TableModel::default());
    fs::create_dir(folder.path().join("1_Pooling")).expect("created");
    for json in [
        r#"{ "pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": false }"#,
        r#"{ "pooling_mode_weightedmean_tokens": true }"#,
        r#"{ "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true }"#,
        r#"{ "pooling_mode": "max" }"#,
    ] {
        write(&folder, "1_Pooling/config.json", json.as_bytes());
        assert_refused(&folder, "1_Pooling/config.json");
        assert_refused(&folder, "set `pooling`");
        let options = ModelDirOptions { pooling: Some(Pooling::Mean), ..ModelDirOptions::default() };
        assert!(open(&folder, options).is_ok(), "{json}");
    }
    let id = |json: &str| {
        write(&folder, "1_Pooling/config.json", json.as_bytes());
        open(&folder, ModelDirOptions::default()).expect("opens").id().clone()
    };
    assert_eq!(id(r#"{ "pooling_mode": "cls" }"#), id(r#"{ "pooling_mode_cls_token": true }"#));
    assert_eq!(id("{}"), id(r#"{ "pooling_mode_mean_tokens": true, "include_prompt": true }"#));
}

#[test]
fn a_text_with_next_to_nothing_in_it_is_read_for_a_megabyte() {
    let folder = folder(&TableModel::default());
    let embedder = open(&folder, ModelDirOptions::default()).expect("opens");
    let spaces = " ".repeat(15 << 20);
    let read = |text: &str| embedder.tokenize(text, Purpose::Passage, 7);
    let tokens = read(&format!("one{spaces}two")).expect("read");
    assert_eq!((tokens.ids, tokens.truncated), (vec![1, 3, 2], true));
    // One word, cut at the end of the part.
    let tokens = read(&"a".repeat(15 << 20)).expect("read");
    assert_eq!((tokens.ids, tokens.truncated), (vec![1, 0, 2], true));
    let tokens = read(&format!("one {}", "a".repeat(15 << 20))).expect("read");
    assert_eq!((tokens.ids, tokens.truncated), (vec![1, 3, 0, 2], true));
    let error = read(&format!("{spaces}two")).expect_err("no tokens");
    assert!(matches!(error, Error::Tokenize { index: 7, .. }), "{error}");
}

#[test]
fn a_model_that_claims_to_be_huge_or_endlessly_deep_is_refused() {
    let table = TableModel::default();
    let folder = folder(&table);
    // A name, an unknown field, and a length that overflows back to its own start; in the model and in its graph.
    for (field, length) in [(2, 1 << 62), (2, 1 << 40), (99, 1 << 62), (99, u64::MAX - 20), (99, 1 << 40)] {
        let claim = [varint(field << 3 | 2), varint(length)].concat();
        for claim in [claim.clone(), bytes(7, &claim), bytes(7, &bytes(1, &claim))] {
            write(&folder, "model.onnx", &[table.onnx(), claim].concat());
            assert!(matches!(open(&folder, ModelDirOptions::default()), Err(Error::BadModel { .. })));
        }
    }
    // Deeply nested graphs in node attributes.
    let mut graph = Vec::new();
    for _ in 0..5_000 {
        graph = bytes(1, &bytes(5, &bytes(6, &graph)));
    }
    write(&folder, "model.onnx", &[number(1, 8), bytes(7, &graph)].concat());
    assert_refused(&folder, "nested too deeply");
}

#[test]
fn it_tells_after_every_text_that_it_goes_on() {
    let folder = folder(&TableModel::default());
    let embedder = open(&folder, ModelDirOptions::default()).expect("it opens");
    let texts: Vec<TokenizedText> = ["one", "two", "one two three"]
        .iter()
        .enumerate()
        .map(|(index, text)| embedder.tokenize(text, Purpose::Passage, index).expect("tokens"))
        .collect();
    let told = std::sync::atomic::AtomicUsize::new(0);
    let goes_on = || {
        told.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let embedded = embedder.run_with_progress(&texts, &goes_on).expect("vectors");
    assert_eq!((embedded.len(), told.into_inner()), (3, 3), "whoever watches it gives it time for each");
}

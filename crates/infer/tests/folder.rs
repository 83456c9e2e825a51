//! Models from a folder: how they are read, pooled and refused.

mod support;

use std::fs;

use corbie_infer::{Embedder, Error, FolderOptions, Pooling, Purpose};
use support::{Table, WIDTH, WORDS};
use tempfile::TempDir;

fn folder(table: &Table) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    table.write(folder.path());
    folder
}

fn open(folder: &TempDir, options: FolderOptions) -> Result<Embedder, Error> {
    Embedder::open(folder.path(), &options, 1)
}

/// What a table model gives for these words, by hand.
fn expected(table: &Table, words: &[&str], pooling: Pooling) -> Vec<f32> {
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
    let table = Table::default();
    let folder = folder(&table);
    for pooling in [Pooling::Mean, Pooling::Cls, Pooling::LastToken] {
        let embedder =
            open(&folder, FolderOptions { pooling: Some(pooling), ..FolderOptions::default() }).expect("opens");
        let embedding = embedder.embed("two three two", Purpose::Passage).expect("embeds");
        assert_close(&embedding.vector, &expected(&table, &["[CLS]", "two", "three", "two", "[SEP]"], pooling));
        assert_eq!((embedding.tokens, embedding.truncated, embedder.dimension()), (5, false, WIDTH));
    }
}

#[test]
fn prefixes_stand_before_queries_and_passages() {
    let table = Table::default();
    let folder = folder(&table);
    let options = FolderOptions {
        query_prefix: Some("query: ".into()),
        passage_prefix: Some("passage: ".into()),
        ..FolderOptions::default()
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
    let table = Table::default();
    let folder = folder(&table);
    fs::create_dir(folder.path().join("1_Pooling")).expect("created");
    for (file, json) in [
        ("1_Pooling/config.json", r#"{ "pooling_mode_cls_token": true, "word_embedding_dimension": 4 }"#),
        ("sentence_bert_config.json", r#"{ "max_seq_length": 6 }"#),
        ("config_sentence_transformers.json", r#"{ "prompts": { "query": "query: ", "document": "" } }"#),
    ] {
        fs::write(folder.path().join(file), json).expect("written");
    }
    let embedder = open(&folder, FolderOptions::default()).expect("opens");
    assert_eq!(embedder.max_tokens(), 6);
    let embedding = embedder.embed("one two one two one two", Purpose::Query).expect("embeds");
    assert_close(&embedding.vector, &expected(&table, &["[CLS]"], Pooling::Cls));
    assert_eq!((embedding.tokens, embedding.truncated), (6, true));

    let options = FolderOptions { pooling: Some(Pooling::LastToken), max_tokens: Some(9), ..FolderOptions::default() };
    let embedder = open(&folder, options).expect("opens");
    assert_eq!(embedder.max_tokens(), 9);
    assert!(!embedder.embed("one two one two one two", Purpose::Query).expect("embeds").truncated);
}

#[test]
fn a_model_that_pools_by_itself_is_taken_at_its_word() {
    let table = Table { inputs: vec!["input_ids"], output: "sentence_embedding", pools: true, ..Table::default() };
    let folder = folder(&table);
    let embedder = open(&folder, FolderOptions::default()).expect("opens");
    let embedding = embedder.embed("three", Purpose::Passage).expect("embeds");
    assert_close(&embedding.vector, &expected(&table, &["[CLS]", "three", "[SEP]"], Pooling::Mean));
}

#[test]
fn two_models_never_share_an_id() {
    let (one, other) = (Table::default(), Table { rows: vec![[1.0, 2.0, 3.0, 4.0]; WORDS.len()], ..Table::default() });
    let (first, second) = (folder(&one), folder(&other));
    let id = |folder: &TempDir, options| open(folder, options).expect("opens").id().clone();
    let plain = id(&first, FolderOptions::default());
    assert_eq!(plain, id(&first, FolderOptions::default()));
    assert_ne!(plain, id(&second, FolderOptions::default()));
    assert_ne!(plain, id(&first, FolderOptions { pooling: Some(Pooling::Cls), ..FolderOptions::default() }));

    let embed = |folder: &TempDir| {
        open(folder, FolderOptions::default()).expect("opens").embed("one", Purpose::Passage).expect("embeds")
    };
    assert_eq!(embed(&first).similarity(&embed(&second)), None);
    assert!(embed(&first).similarity(&embed(&first)).is_some_and(|same| (same - 1.0).abs() < 1e-6));
}

#[test]
fn a_model_that_gives_nan_or_nothing_is_an_error_and_never_a_vector() {
    for bad in [f32::NAN, f32::INFINITY, 0.0] {
        let mut table = Table::default();
        table.rows[3] = [bad; WIDTH];
        let folder = folder(&table);
        let options = FolderOptions { pooling: Some(Pooling::LastToken), ..FolderOptions::default() };
        let mut tokenizer: serde_json::Value = serde_json::from_str(&support::tokenizer()).expect("JSON");
        tokenizer["post_processor"] = serde_json::Value::Null; // So that the last token is a word.
        fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).expect("written");
        let embedder = open(&folder, options).expect("the word it is tried with is fine");
        assert!(embedder.embed("two", Purpose::Passage).is_ok());
        let error = embedder.embed_many(&["two", "one"], Purpose::Passage).expect_err("no vector");
        assert!(matches!(error, Error::Unusable { index: 1, .. }), "{error}");
    }
}

#[test]
fn what_is_no_model_is_refused_with_the_reason() {
    let good = Table::default();
    let check = |break_it: &dyn Fn(&TempDir), reason: &str| {
        let folder = folder(&good);
        break_it(&folder);
        let error = open(&folder, FolderOptions::default()).expect_err(reason).to_string();
        assert!(error.contains(reason), "`{error}` does not say `{reason}`");
    };
    let write =
        |folder: &TempDir, file: &str, bytes: &[u8]| fs::write(folder.path().join(file), bytes).expect("written");
    check(&|folder| fs::remove_file(folder.path().join("model.onnx")).expect("removed"), "`model.onnx` is not there");
    check(
        &|folder| fs::remove_file(folder.path().join("tokenizer.json")).expect("removed"),
        "`tokenizer.json` cannot be read",
    );
    check(&|folder| write(folder, "tokenizer.json", b"{}"), "`tokenizer.json`");
    check(&|folder| write(folder, "model.onnx", b"not a model"), "cannot be used");
    check(&|folder| write(folder, "model.onnx", &good.onnx()[..100]), "cannot be used");
    check(&|folder| write(folder, "sentence_bert_config.json", b"[1"), "sentence_bert_config.json");
    let extra = Table { inputs: vec!["input_ids", "past_key_values.0.key"], ..Table::default() };
    check(&|folder| write(folder, "model.onnx", &extra.onnx()), "it wants an input `past_key_values.0.key`");
    let image = Table { inputs: vec!["pixel_values"], ..Table::default() };
    check(&|folder| write(folder, "model.onnx", &image.onnx()), "input");
    let small = Table { rows: vec![[1.0; WIDTH]; 2], ..Table::default() };
    check(&|folder| write(folder, "model.onnx", &small.onnx()), "could not be run");

    let nowhere = Embedder::open("/nowhere/at/all".as_ref(), &FolderOptions::default(), 1).expect_err("not there");
    assert!(nowhere.to_string().contains("not a folder"), "{nowhere}");
}

#[test]
fn a_model_cut_off_anywhere_is_an_error_and_never_a_panic() {
    let table = Table::default();
    let whole = table.onnx();
    let folder = folder(&table);
    for end in 0..whole.len() {
        fs::write(folder.path().join("model.onnx"), &whole[..end]).expect("written");
        // A cut may leave a smaller model that is whole; it must then give whole vectors.
        if let Ok(embedder) = open(&folder, FolderOptions::default()) {
            let vector = embedder.embed("one", Purpose::Passage).map(|embedding| embedding.vector);
            assert!(vector.is_ok_and(|vector| vector.iter().all(|number| number.is_finite())), "cut at {end}");
        }
    }
}

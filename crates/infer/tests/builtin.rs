//! Built-in models: metadata, and embeddings compared with the original model.

use std::path::Path;
use std::sync::LazyLock;

use corbie_infer::{Embedder, Embedding, Error, MAX_TEXT_BYTES, Purpose, builtin_models};
use proptest::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};

static EMBEDDER: LazyLock<Embedder> = LazyLock::new(|| Embedder::builtin(1).expect("the model is inside"));
static THREADED: LazyLock<Embedder> = LazyLock::new(|| Embedder::builtin(3).expect("the model is inside"));
static PORTABLE: LazyLock<Embedder> = LazyLock::new(|| Embedder::builtin_portable(1).expect("the model is inside"));
static TEXTS: LazyLock<Vec<String>> =
    LazyLock::new(|| serde_json::from_str(include_str!("data/texts.json")).expect("a list of texts"));

fn embed(text: &str) -> Result<Embedding, Error> {
    EMBEDDER.embed(text, Purpose::Passage)
}

#[test]
fn their_files_are_the_ones_the_cards_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    for (card, name) in builtin_models().iter().zip(["all-MiniLM-L6-v2", "PP-OCRv6-tiny"]) {
        assert!(!card.files.is_empty() && card.source.sha256.len() == 64, "{card:?}");
        for file in &card.files {
            let bytes = std::fs::read(folder.join(name).join(&file.name)).expect("the file is there");
            let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((bytes.len() as u64, hash), (file.bytes, file.sha256.clone()), "{name}/{}", file.name);
        }
    }
}

#[test]
fn the_files_inside_are_whole() {
    assert_eq!(corbie_infer::damaged_builtin_files(), Vec::<String>::new());
}

#[test]
fn the_cards_tell_what_each_model_does_and_its_licence() {
    let [embedding, reading] = builtin_models() else { panic!("two models are inside") };
    assert_eq!((EMBEDDER.dimension(), EMBEDDER.max_tokens()), (embedding.dimension, embedding.max_tokens));
    assert_eq!(EMBEDDER.id().as_str(), embedding.id);
    assert_eq!(embedding.description(), "text embeddings, 384 dimensions, up to 256 tokens");
    assert_eq!((reading.id.as_str(), reading.description().as_str()), ("PP-OCRv6-tiny", "OCR: image to text"));
    assert_eq!(reading.source.model_license, "Apache-2.0");
    assert!(["de", "en", "fr"].iter().all(|language| reading.languages.iter().any(|known| known == language)));
    // Fields that do not apply are omitted.
    let told = serde_json::to_value(reading).expect("a card is data");
    assert_eq!((told.get("dimension"), told.get("max_tokens")), (None, None));
    assert_eq!(told["file"].as_array().map(Vec::len), Some(reading.files.len()));
}

#[test]
fn its_vectors_are_close_to_the_originals() {
    let reference: Vec<f32> = include_bytes!("data/vectors.f32")
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
        .collect();
    let vectors = EMBEDDER.embed_many(&TEXTS, Purpose::Passage).expect("embeds");
    assert_eq!(reference.len(), vectors.len() * EMBEDDER.dimension());
    let cosines: Vec<f32> = vectors
        .iter()
        .zip(reference.chunks_exact(EMBEDDER.dimension()))
        .map(|(embedding, original)| embedding.vector.iter().zip(original).map(|(a, b)| a * b).sum())
        .collect();
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    let least = cosines.iter().copied().fold(1.0, f32::min);
    assert!(mean >= 0.99 && least >= 0.98, "mean {mean}, least {least}");
}

#[test]
fn every_processor_gives_the_same_vectors_but_for_the_last_digits() {
    let (here, elsewhere) =
        (EMBEDDER.embed_many(&TEXTS, Purpose::Passage), PORTABLE.embed_many(&TEXTS, Purpose::Passage));
    let (here, elsewhere) = (here.expect("embeds"), elsewhere.expect("embeds"));
    let furthest = here.iter().zip(&elsewhere).map(|(a, b)| a.similarity(b).expect("one model")).fold(1.0, f32::min);
    assert!(furthest > 0.9995, "{furthest}");
}

#[test]
fn its_tokens_are_the_reference_tokenizers() {
    #[derive(Deserialize)]
    struct ReferenceTokens {
        text: String,
        ids: Vec<u32>,
    }
    for line in include_str!("data/tokens.jsonl").lines() {
        let ReferenceTokens { text, ids } = serde_json::from_str(line).expect("a text with its ids");
        match EMBEDDER.tokenize(&text, Purpose::Passage, 0) {
            Ok(tokens) if !tokens.truncated => assert_eq!(tokens.ids, ids, "{text:?}"),
            Ok(tokens) => {
                let (most, end) = (EMBEDDER.max_tokens(), ids[ids.len() - 1]);
                assert!(ids.len() > most, "{text:?} was cut for nothing");
                assert_eq!(tokens.ids, [&ids[..most - 1], &[end]].concat(), "{text:?}");
            }
            Err(Error::EmptyText { .. }) => assert_eq!(ids.len(), 2, "{text:?} has tokens"),
            Err(error) => panic!("{text:?}: {error}"),
        }
    }
}

#[test]
fn known_pairs_are_alike_and_others_are_not() {
    let similarity =
        |a: &str, b: &str| embed(a).expect("embeds").similarity(&embed(b).expect("embeds")).expect("one model");
    // The example from the model card.
    let same = similarity("That is a happy person", "That is a very happy person");
    let related = similarity("That is a happy person", "Today is a sunny day");
    assert!(same > 0.9 && related < 0.4, "{same} {related}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn a_text_has_the_same_vector_whatever_it_is_embedded_with(
        chosen in prop::collection::vec((0usize..86, 1usize..200), 1..24),
    ) {
        let texts: Vec<String> =
            chosen.iter().map(|(index, letters)| TEXTS[*index].chars().take(*letters).collect()).collect();
        prop_assume!(texts.iter().all(|text| !text.trim().is_empty()));
        let together = EMBEDDER.embed_many(&texts, Purpose::Passage).expect("embeds");
        let by_threads = THREADED.embed_many(&texts, Purpose::Passage).expect("embeds");
        let portable = PORTABLE.embed_many(&texts, Purpose::Passage).expect("embeds");
        for (index, text) in texts.iter().enumerate() {
            let alone = embed(text).expect("embeds");
            prop_assert_eq!(&alone, &together[index], "{:?}", text);
            prop_assert_eq!(&alone, &by_threads[index], "{:?}", text);
            prop_assert_eq!(&PORTABLE.embed(text, Purpose::Passage).expect("embeds"), &portable[index], "{:?}", text);
        }
    }

    #[test]
    fn any_text_gives_a_unit_vector_or_a_clear_error(text in "\\PC{0,40}|[\u{0}-\u{1f}\u{7f}-\u{a0}]{0,9}|.{0,30}") {
        match embed(&text) {
            Ok(embedding) => {
                let length: f32 = embedding.vector.iter().map(|number| number * number).sum();
                prop_assert!((length - 1.0).abs() < 1e-4, "{}", length);
                prop_assert_eq!(embedding.vector.len(), 384);
            }
            Err(error) => prop_assert!(matches!(error, Error::EmptyText { .. }), "{}", error),
        }
    }
}

#[test]
fn empty_and_invisible_texts_are_refused_with_their_place() {
    for empty in ["", "  \n\t", "\u{0}\u{1}\u{7}", "\u{200b}\u{feff}"] {
        let error = EMBEDDER.embed_many(&["fine", empty], Purpose::Passage).expect_err("nothing to embed");
        assert!(matches!(error, Error::EmptyText { index: 1 }), "{empty:?}: {error}");
    }
    assert!(EMBEDDER.embed_many::<&str>(&[], Purpose::Passage).expect("nothing is fine").is_empty());
}

#[test]
fn a_text_that_is_too_long_for_the_model_is_cut_and_says_so() {
    let short = embed(&"word ".repeat(254)).expect("embeds");
    assert_eq!((short.tokens, short.truncated), (256, false));
    let one_more = embed(&"word ".repeat(255)).expect("embeds");
    assert_eq!((one_more.tokens, one_more.truncated), (256, true));
    assert_eq!(short.vector, one_more.vector);
}

#[test]
fn megabytes_are_read_as_far_as_the_model_reads() {
    let sentence = "The quick brown fox jumps over the lazy dog, again. ";
    let short = embed(&sentence.repeat(40)).expect("embeds");
    let long = embed(&sentence.repeat(60_000)).expect("embeds");
    assert!(short.truncated && long.truncated);
    assert_eq!(short.vector, long.vector);
    // One word of a megabyte, a megabyte of spaces before a word, a megabyte of one letter in another script.
    assert_eq!(embed(&"a".repeat(1_000_000)).expect("embeds").vector, embed(&"a".repeat(200)).expect("embeds").vector);
    let far = embed(&format!("{}word", " ".repeat(1_000_000))).expect("embeds");
    assert_eq!((far.vector, far.truncated), (embed("word").expect("embeds").vector, false));
    assert!(embed(&"字".repeat(400_000)).expect("embeds").truncated);
    let error = embed(&"a".repeat(MAX_TEXT_BYTES + 1)).expect_err("too long");
    assert!(matches!(error, Error::TextTooLong { index: 0, .. }), "{error}");
}

#[test]
fn the_places_of_tokens_are_told_for_texts_of_any_length() {
    let text = "Grüße, corbie! 漢字 unaffable\n".repeat(2000);
    let offsets = EMBEDDER.offsets(&text).unwrap();
    let words: Vec<&str> = offsets[..10].iter().map(|place| &text[place.clone()]).collect();
    assert_eq!(words, ["Gr", "ü", "ße", ",", "co", "rb", "ie", "!", "漢", "字"]);
    assert!(offsets.is_sorted_by(|one, next| one.end <= next.start));
    assert_eq!(offsets.len() % 2000, 0);
    assert!(EMBEDDER.offsets("").unwrap().is_empty());
}

#[test]
fn k40_windows_are_the_whole_text_and_each_is_read_whole() {
    let tokenizer = EMBEDDER.tokenizer();
    assert_eq!(tokenizer.max_passage_tokens(), EMBEDDER.max_tokens() - 2);
    let prose = "The kestrel hovered above the motorway embankment. ".repeat(60);
    let long_word = "x7".repeat(900);
    let chinese = "\u{6c49}\u{5b57}".repeat(400);
    for text in ["", "short", &prose, &long_word, &chinese] {
        let windows = tokenizer.windows(text).unwrap();
        assert_eq!(windows.concat(), text);
        for window in &windows {
            assert!(!EMBEDDER.tokenize(window, Purpose::Passage, 0).unwrap().truncated, "{}", window.len());
        }
        let fair = tokenizer.offsets(text).unwrap().len().div_ceil(tokenizer.max_passage_tokens());
        assert!(windows.len() <= fair + 1, "{} windows where {fair} would do", windows.len());
    }
}

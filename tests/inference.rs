#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The inference thread that owns the models: order, fairness, bounds, cancellation, and broken models.

use corbie_test_support::onnx_model as small_model;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use corbie::config::duration::Timeout;
use corbie::config::inference::{EmbeddingModel, Inference as Settings};
use corbie::inference::{self, Error, Inference, ModelLoader};
use corbie_infer::{Embedder, Purpose};
use prometheus_client::registry::Registry;
use small_model::TableModel;
use tempfile::TempDir;
use tokio::time::timeout;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text number {number} {}", "more words ".repeat(number % 5))).collect()
}

fn metrics(inference: &Inference) -> String {
    let mut registry = Registry::default();
    inference.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

#[tokio::test]
async fn callers_get_their_own_vectors_in_their_own_order() {
    let inference = Inference::new(Settings::default());
    let alone = Embedder::builtin(1).unwrap();
    let callers = (1..6).map(|caller| {
        let inference = inference.clone();
        async move {
            let texts: Vec<String> = texts(caller * 7).into_iter().map(|text| format!("{caller} {text}")).collect();
            (inference.embed(texts.clone(), Purpose::Passage).await.unwrap(), texts)
        }
    });
    for (vectors, texts) in timeout(TEST_TIMEOUT, futures_util::future::join_all(callers)).await.unwrap() {
        assert_eq!(vectors, alone.embed_many(&texts, Purpose::Passage).unwrap());
    }
    assert!(inference.embed(Vec::new(), Purpose::Query).await.unwrap().is_empty());
    let metrics = metrics(&inference);
    assert!(metrics.contains("inference_texts_total 105"), "{metrics}");
}

#[tokio::test]
async fn a_search_does_not_wait_behind_a_thousand_pages() {
    let inference = Inference::new(Settings::default());
    let pages = tokio::spawn({
        let inference = inference.clone();
        async move { inference.embed(texts(600), Purpose::Passage).await }
    });
    inference.embed(vec!["warm".into()], Purpose::Query).await.unwrap();
    let found = timeout(TEST_TIMEOUT, inference.embed(vec!["a query".into()], Purpose::Query)).await.unwrap();
    assert!(found.is_ok());
    assert!(!pages.is_finished(), "the query was answered first");
    pages.abort();
}

#[tokio::test]
async fn a_search_does_not_wait_for_room_that_others_take() {
    let inference = Inference::new(Settings::default());
    let ingest = || {
        let inference = inference.clone();
        tokio::spawn(async move { inference.embed(texts(2_000), Purpose::Passage).await })
    };
    let ingests = [ingest(), ingest()];
    inference.embed(vec!["warm".into()], Purpose::Query).await.unwrap();
    let found = timeout(TEST_TIMEOUT, inference.embed(vec!["a query".into()], Purpose::Query)).await.unwrap();
    assert!(found.is_ok());
    for ingest in ingests {
        assert!(!ingest.is_finished(), "the query was answered first");
        ingest.abort();
    }
}

#[tokio::test]
async fn a_caller_that_leaves_gives_its_room_back() {
    let inference = Inference::new(Settings { max_queued: 100, ..Settings::default() });
    let gone = inference.embed(texts(100), Purpose::Passage);
    assert!(timeout(Duration::from_millis(50), gone).await.is_err(), "a hundred texts take longer");
    let next = timeout(TEST_TIMEOUT, inference.embed(texts(100), Purpose::Passage)).await.unwrap().unwrap();
    assert_eq!(next.len(), 100);
    let metrics = metrics(&inference);
    assert!(metrics.contains("inference_abandoned_total 1"), "{metrics}");
}

#[tokio::test]
async fn more_texts_than_there_is_room_for_still_come_through() {
    let inference = Inference::new(Settings { max_queued: 3, ..Settings::default() });
    let all = futures_util::future::join_all((0..4).map(|_| inference.embed(texts(10), Purpose::Passage)));
    for vectors in timeout(TEST_TIMEOUT, all).await.unwrap() {
        assert_eq!(vectors.unwrap().len(), 10);
    }
}

#[tokio::test]
async fn a_bad_text_fails_its_caller_and_no_other() {
    let inference = Inference::new(Settings::default());
    let mut bad = texts(9);
    bad[8] = " ".into();
    let (bad, good) = tokio::join!(inference.embed(bad, Purpose::Passage), inference.embed(texts(9), Purpose::Passage));
    assert!(matches!(&bad, Err(Error::Text { index: 8, .. })), "{bad:?}");
    assert_eq!(good.unwrap().len(), 9);
}

#[tokio::test]
async fn a_text_the_model_fails_on_fails_its_caller_and_no_other() {
    let folder = TempDir::new().unwrap();
    let mut table = TableModel::default();
    let spoilt = small_model::WORDS.iter().position(|word| *word == "two").unwrap();
    table.rows[spoilt] = [f32::NAN; small_model::WIDTH];
    table.write(folder.path());
    let embedding = EmbeddingModel { path: Some(folder.path().into()), ..EmbeddingModel::default() };
    let inference = Inference::new(Settings { embedding, ..Settings::default() });
    // Long lists, so that both share a batch by then, and the bad text is in neither the first batch nor the first part
    // of its list.
    let mut bad = vec!["one".to_owned(); 100];
    bad[90] = "two".into();
    let good = vec!["three".to_owned(); 100];
    let (good, bad) = tokio::join!(inference.embed(good, Purpose::Passage), inference.embed(bad, Purpose::Passage));
    assert_eq!(good.unwrap().len(), 100);
    let error = bad.unwrap_err();
    assert!(matches!(error, Error::InvalidVector { index: 90, .. }), "{error:?}");
    assert!(error.to_string().contains("an invalid vector for text 91"), "{error}");
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_says_why_and_works_once_it_is_mended() {
    let folder = TempDir::new().unwrap();
    let embedding = EmbeddingModel { path: Some(folder.path().into()), ..EmbeddingModel::default() };
    let inference = Inference::new(Settings { embedding, ..Settings::default() });
    let broken = inference.embed(vec!["one".into()], Purpose::Passage).await;
    assert!(matches!(&broken, Err(Error::Model(why)) if why.contains("`model.onnx` is missing")), "{broken:?}");
    TableModel::default().write(folder.path());
    let mended = inference.embed(vec!["one".into()], Purpose::Passage).await.unwrap();
    assert_eq!(mended[0].vector.len(), small_model::WIDTH);
    assert_eq!(inference.loaded().unwrap().id, mended[0].model);
}

/// A model that hangs on its first uses until the sender is dropped, with a use counter and a notification per use.
struct HangingModel {
    open: ModelLoader,
    used: Arc<AtomicUsize>,
    begun: mpsc::Receiver<()>,
    hold: mpsc::Sender<()>,
}

fn hanging_model(times: usize) -> HangingModel {
    let used = Arc::new(AtomicUsize::new(0));
    let ((hold, held), (tell, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let (held, counted) = (Mutex::new(held), used.clone());
    let open: ModelLoader = Arc::new(move |settings| {
        if counted.fetch_add(1, Ordering::SeqCst) < times {
            let _ = tell.send(());
            // No message is ever sent.
            let _ = held.lock().unwrap().recv();
        }
        inference::load_model(settings)
    });
    HangingModel { open, used, begun, hold }
}

fn small_model_settings(folder: &TempDir, timeout: Timeout) -> Settings {
    TableModel::default().write(folder.path());
    let embedding = EmbeddingModel { path: Some(folder.path().into()), ..EmbeddingModel::default() };
    Settings { embedding, timeout, ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_come_back_fails_whose_texts_it_is_at_and_another_takes_its_place() {
    let folder = TempDir::new().unwrap();
    let HangingModel { open, begun, hold, .. } = hanging_model(1);
    let inference = Inference::with_loader(small_model_settings(&folder, "2s".parse().unwrap()), open);
    let embed = |text: &str| {
        let (inference, texts) = (inference.clone(), vec![text.to_owned()]);
        tokio::spawn(async move { timeout(TEST_TIMEOUT, inference.embed(texts, Purpose::Query)).await.unwrap() })
    };
    let first = embed("one");
    begun.recv_timeout(TEST_TIMEOUT).unwrap();
    let others: Vec<_> = (0..5).map(|_| embed("two")).collect();
    let error = first.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::ModelTimeout(_)) && error.to_string().contains("`inference.timeout`"), "{error}");
    for other in others {
        assert_eq!(other.await.unwrap().unwrap().len(), 1, "it only waited, and is served by the next");
    }
    assert_eq!(embed("three").await.unwrap().unwrap().len(), 1);
    assert!(inference.impairment().is_some_and(|why| why.contains("another instance of it is in use")));
    assert!(metrics(&inference).contains("inference_stuck_threads 1"), "{}", metrics(&inference));
    // The capacity is released just after the reply.
    let released = async {
        while inference.texts_waiting() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(TEST_TIMEOUT, released).await.expect("texts that waited for the first release their capacity");
    drop(hold);
    let came_back = async {
        while inference.impairment().is_some() {
            tokio::task::yield_now().await;
        }
    };
    timeout(TEST_TIMEOUT, came_back).await.expect("it ends when it comes back");
    assert_eq!(embed("one").await.unwrap().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_never_come_back_are_not_loaded_for_ever() {
    let folder = TempDir::new().unwrap();
    let HangingModel { open, used, hold, .. } = hanging_model(usize::MAX);
    let inference = Inference::with_loader(small_model_settings(&folder, "200ms".parse().unwrap()), open);
    for _ in 0..6 {
        let embedded = timeout(TEST_TIMEOUT, inference.embed(vec!["one".into()], Purpose::Query)).await.unwrap();
        assert!(matches!(embedded, Err(Error::ModelTimeout(_))), "{embedded:?}");
    }
    assert_eq!(used.load(Ordering::SeqCst), 3, "no more threads and models are left behind");
    assert!(inference.impairment().is_some_and(|why| why.contains("is disabled until")));
    drop(hold);
}

//! C-62: timeouts, retries and caching.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use corbie::external_classifier::{Error, ExternalClassifier, Settings, Transport};
use corbie::providers::http_client::HttpClient;
use serde_json::json;
use tokio::net::TcpListener;

use crate::fake_classifier::{Behaviour, ClassifyBehaviour, FakeClassifier, Style, verdict};
use crate::{advance_time, client_of, settings_of, wait_for_state};

#[tokio::test]
async fn c62_f23_a_slow_server_holds_a_prompt_up_for_twice_its_timeout_at_most() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "timeout: 200ms");
    remote.categories().await.unwrap();
    fake.set_classify(ClassifyBehaviour::Hangs);
    fake.take_requests();
    let start = Instant::now();
    assert_eq!(remote.classify("hello").await.unwrap_err(), Error::Timeout);
    let took = start.elapsed();
    assert!((Duration::from_millis(200)..Duration::from_millis(1000)).contains(&took), "{took:?}");
    assert_eq!(
        fake.take_requests(),
        ["tools/call classify_text"; 2],
        "three retries were allowed, but not the time for them"
    );
}

/// A listener that closes every connection, and the number of connections.
async fn closing_listener() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    (url, count)
}

#[tokio::test]
async fn c62_f24_a_request_that_could_not_be_sent_is_sent_again_as_often_as_allowed() {
    for (more, tries) in [("", 4), ("max_retries: 0", 1), ("max_retries: 2", 3)] {
        let (url, count) = closing_listener().await;
        assert_eq!(client_of(&url, more).classify("hello").await.unwrap_err(), Error::Unreachable("connection closed"));
        assert_eq!(count.load(Ordering::Relaxed), tries);
    }
}

#[tokio::test]
async fn c62_f24_a_server_that_answers_500_or_503_is_asked_again_as_often_as_allowed() {
    for style in [Style::Rest, Style::JsonRpc] {
        for (status, more, tries) in
            [(500, "", 4), (503, "", 4), (503, "max_retries: 0", 1), (502, "max_retries: 1", 2)]
        {
            let fake = FakeClassifier::start(Behaviour { style, ..Behaviour::default() }).await;
            let remote = client_of(&fake.url(), more);
            remote.categories().await.unwrap();
            fake.take_requests();
            fake.set_classify(ClassifyBehaviour::Status(status));
            let start = Instant::now();
            assert_eq!(remote.classify("hello").await.unwrap_err(), Error::Status { status });
            assert_eq!(fake.take_requests(), vec!["tools/call classify_text"; tries], "{style:?} {status} {more}");
            // 50, 100 and 200 ms.
            let waits = Duration::from_millis((1 << (tries - 1)) * 50 - 50);
            assert!((waits..waits + Duration::from_secs(2)).contains(&start.elapsed()), "{:?}", start.elapsed());
            fake.set_classify(ClassifyBehaviour::Answers(verdict(1)));
            remote.classify("another text").await.expect("one text does not open the circuit");
        }
    }
}

#[tokio::test]
async fn c62_f24_a_server_that_recovers_during_the_retries_classifies_the_text() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    remote.categories().await.unwrap();
    fake.set_classify(ClassifyBehaviour::Status(503));
    let (answer, ()) = tokio::join!(remote.classify("hello"), async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        fake.set_classify(ClassifyBehaviour::Answers(verdict(1)));
    });
    assert_eq!(answer.unwrap().category(), "law");
}

#[tokio::test]
async fn c62_f24_what_trying_again_cannot_help_is_told_at_once() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    remote.categories().await.unwrap();
    for classify in [ClassifyBehaviour::Status(501), ClassifyBehaviour::Answers(json!({"error": "no"}))] {
        fake.take_requests();
        fake.set_classify(classify);
        assert!(remote.classify("hello").await.is_err());
        assert_eq!(fake.take_requests(), ["tools/call classify_text"]);
    }
}

#[tokio::test]
async fn c62_p21_a_redirect_is_not_followed() {
    let elsewhere = FakeClassifier::start(Behaviour::default()).await;
    let location = elsewhere.url();
    let redirecting = axum::Router::new().fallback(async move || {
        (axum::http::StatusCode::TEMPORARY_REDIRECT, [(axum::http::header::LOCATION, location)])
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, redirecting).await });
    for transport in ["http", "streamable-http"] {
        let remote = client_of(&url, &format!("transport: {transport}, max_retries: 0"));
        let error = remote.classify("hello").await.unwrap_err();
        assert_eq!(error, Error::Status { status: 307 }, "{transport}");
    }
    assert_eq!(elsewhere.take_requests(), [""; 0]);
}

/// The configuration rejects such a URL, so the test bypasses it.
#[tokio::test]
async fn c62_p21_a_server_at_a_forbidden_address_is_not_asked_and_not_tried_again() {
    let (url, count) = closing_listener().await;
    let url = url.replace("127.0.0.1", "0.0.0.0");
    let settings = Settings {
        transport: Transport::Http { url: url.parse().unwrap(), headers: Default::default() },
        ..settings_of("http://localhost:1/mcp")
    };
    let error = ExternalClassifier::new(settings, HttpClient::default()).classify("hello").await.unwrap_err();
    assert_eq!(error, Error::EgressDenied);
    assert!(error.to_string().contains("`network.allowed_addresses`"), "{error}");
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn c62_f25_the_list_is_asked_for_again_after_the_interval_and_verdicts_are_forgotten_with_it() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "refresh_interval: 1m");
    let following = tokio::spawn(remote.clone().run());
    wait_for_state(&remote, |state| state.is_ready()).await;
    remote.classify("hello").await.unwrap();
    remote.classify("hello").await.unwrap();
    assert_eq!(
        fake.take_requests().iter().filter(|asked| asked.contains("classify_text")).count(),
        1,
        "it was remembered"
    );

    fake.set_categories(json!(["math", "law", "general", "cooking"]));
    advance_time(Duration::from_secs(59)).await;
    assert_eq!(fake.take_requests(), [""; 0]);
    advance_time(Duration::from_secs(1)).await;
    wait_for_state(&remote, |state| *state == corbie::external_classifier::State::Ready { categories: 4 }).await;
    assert_eq!(remote.categories().await.unwrap().names().len(), 4);
    remote.classify("hello").await.unwrap();
    assert_eq!(fake.take_requests(), ["tools/call list_categories", "tools/call classify_text"]);
    following.abort();
}

#[tokio::test]
async fn c62_f25_without_remembering_the_list_is_asked_for_with_every_text() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "cache_categories: false");
    remote.classify("hello").await.unwrap();
    fake.take_requests();
    fake.set_categories(json!(["law", "math", "general"]));
    assert_eq!(remote.classify("hello").await.unwrap().category(), "math");
    assert_eq!(fake.take_requests(), ["tools/call list_categories", "tools/call classify_text"]);
}

#[tokio::test]
async fn c62_long_texts_are_not_remembered() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    let long = "x".repeat(4097);
    remote.classify(&long).await.unwrap();
    fake.set_classify(ClassifyBehaviour::Answers(verdict(0)));
    assert_eq!(remote.classify(&long).await.unwrap().class, 0);
}

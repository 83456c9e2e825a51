//! C-64: the circuit breaker opens for a server that is down or slow, and closes on its own.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use corbie::external_classifier::{Error, State};

use crate::fake_classifier::{Behaviour, ClassifyBehaviour, FakeClassifier, Style, verdict};
use crate::{advance_time, client, client_of, wait_for_state};

const RETRY_INTERVAL: Duration = Duration::from_secs(10);

#[tokio::test]
async fn c64_a_server_that_is_gone_is_left_alone_and_used_again_when_it_is_back() {
    for style in [Style::Rest, Style::JsonRpc, Style::Events] {
        let fake = FakeClassifier::start(Behaviour { style, ..Behaviour::default() }).await;
        let remote = client_of(&fake.url(), "");
        remote.classify("one").await.unwrap();
        let stopped = fake.stop().await;
        let gone = Error::Unreachable("connection refused; check its `url` and that it is running");
        assert_eq!(remote.classify("two").await.unwrap_err(), gone);
        assert_eq!(remote.state(), State::Down(gone));

        let fake = stopped.restart().await;
        assert_eq!(remote.classify("three").await.unwrap_err(), Error::CircuitOpen, "not asked for ten seconds");
        fake.take_requests();
        advance_time(RETRY_INTERVAL).await;
        assert_eq!(remote.classify("four").await.unwrap().category(), "law");
        assert_eq!(remote.state(), State::Ready { categories: 3 });
        assert_eq!(fake.take_requests()[0], "initialize", "it may be another server: the whole start again");
    }
}

#[tokio::test]
async fn c64_while_it_is_followed_it_comes_back_without_a_prompt() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    let following = tokio::spawn(remote.clone().run());
    wait_for_state(&remote, State::is_ready).await;
    let stopped = fake.stop().await;
    assert!(remote.classify("hello").await.is_err());
    assert!(!remote.state().is_ready());
    let _fake = stopped.restart().await;
    // The background task has to see the state first.
    tokio::task::yield_now().await;
    advance_time(RETRY_INTERVAL).await;
    wait_for_state(&remote, State::is_ready).await;
    following.abort();
}

#[tokio::test]
async fn c64_a_server_that_is_down_at_the_start_is_looked_for_until_it_is_there() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let url = fake.url();
    let stopped = fake.stop().await;
    let remote = client_of(&url, "");
    let following = tokio::spawn(remote.clone().run());
    wait_for_state(&remote, |state| matches!(state, State::Down(_))).await;
    let _fake = stopped.restart().await;
    tokio::task::yield_now().await;
    advance_time(RETRY_INTERVAL).await;
    wait_for_state(&remote, State::is_ready).await;
    following.abort();
}

#[tokio::test]
async fn c64_after_three_failures_in_a_row_a_slow_server_costs_nothing() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "timeout: 100ms, max_retries: 0");
    remote.categories().await.unwrap();
    fake.set_classify(ClassifyBehaviour::Hangs);
    for text in ["one", "two", "three"] {
        assert_eq!(remote.classify(text).await.unwrap_err(), Error::Timeout);
    }
    fake.take_requests();
    let start = Instant::now();
    for text in ["four", "five", "six"] {
        assert_eq!(remote.classify(text).await.unwrap_err(), Error::CircuitOpen);
    }
    assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
    assert_eq!(fake.take_requests(), [""; 0]);
}

#[tokio::test]
async fn c64_a_server_that_keeps_breaking_the_rules_is_left_alone_too() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    fake.set_classify(ClassifyBehaviour::Answers(serde_json::json!({"class": "law"})));
    for text in ["one", "two", "three"] {
        assert!(matches!(remote.classify(text).await, Err(Error::Invalid(_))));
    }
    assert_eq!(remote.classify("four").await.unwrap_err(), Error::CircuitOpen);
    assert!(matches!(remote.state(), State::Down(Error::Invalid(_))));
    fake.set_classify(ClassifyBehaviour::Answers(verdict(1)));
    advance_time(RETRY_INTERVAL).await;
    assert_eq!(remote.classify("five").await.unwrap().category(), "law");
}

#[tokio::test]
async fn c64_a_prompt_that_is_given_up_while_it_tries_does_not_keep_the_server_away() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "timeout: 100ms, max_retries: 0");
    fake.set_classify(ClassifyBehaviour::Hangs);
    for text in ["one", "two", "three"] {
        remote.classify(text).await.unwrap_err();
    }
    advance_time(RETRY_INTERVAL).await;
    // A cancelled call.
    let given_up = tokio::time::timeout(Duration::from_millis(20), remote.classify("four")).await;
    assert!(given_up.is_err());
    fake.set_classify(ClassifyBehaviour::Answers(verdict(0)));
    assert_eq!(remote.classify("five").await.unwrap().class, 0);
}

/// Captured log.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn c64_s01_going_down_and_coming_back_are_told_once_and_nothing_secret_is() {
    // With a single subscriber, a callsite first reached by the thread of another test would be cached as disabled.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let log = LogBuffer::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    let _guard = tracing::subscriber::set_default(lines.with_writer(move || writer.clone()).finish());

    let fake =
        FakeClassifier::start(Behaviour { authorization: Some("Bearer sk-marker"), ..Behaviour::default() }).await;
    let yaml = format!(
        "classification: {{type: mcp, mcp_server: {{url: '{}', headers: {{Authorization: 'Bearer ${{KEY}}'}}}}}}",
        fake.url()
    );
    let remote = client(&yaml, &[("KEY", "sk-marker")]);
    remote.classify("a text of a user").await.unwrap();
    let stopped = fake.stop().await;
    for text in ["one", "two", "three", "four"] {
        remote.classify(text).await.unwrap_err();
    }
    let _fake = stopped.restart().await;
    advance_time(RETRY_INTERVAL).await;
    remote.classify("five").await.unwrap();
    remote.classify("six").await.unwrap();

    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let count = |text: &str| logged.matches(text).count();
    assert_eq!(count("external classifier is ready"), 1, "{logged}");
    assert_eq!(count("WARN"), 1, "{logged}");
    assert_eq!(count("external classifier is unavailable; falling back to the local one"), 1, "{logged}");
    assert_eq!(count("external classifier has recovered"), 1, "{logged}");
    for secret in ["sk-marker", "a text of a user", "acme/lawyer"] {
        assert_eq!(count(secret), 0, "{logged}");
    }
}

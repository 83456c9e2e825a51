//! CPU time targets with slack for a busy machine; `bench/run classify` measures precisely.

use std::time::{Duration, Instant};

use corbie::app;
use corbie::config::classification::ClassificationMethod;

use crate::fixture::{classify, settings};

/// The fastest of several rounds, as the slow ones mostly reflect the machine.
async fn per_text(method: ClassificationMethod, texts: &[&str]) -> Duration {
    let mut config = settings();
    config.classification.method = method;
    config.classification.cache_entries = 0;
    let app = app::build(&config).unwrap();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        for text in texts {
            classify(&app, text).await;
        }
        best = best.min(started.elapsed() / texts.len() as u32);
    }
    best
}

#[tokio::test]
async fn n09_classification_takes_far_less_than_a_hundred_milliseconds() {
    let texts =
        ["why is the sky blue", "who built the great wall", "is there a way to mute one person in a group chat"];
    for (method, most) in [
        (ClassificationMethod::Rules, 5),
        (ClassificationMethod::Hybrid, 100),
        (ClassificationMethod::Embedding, 100),
        (ClassificationMethod::Model, 100),
    ] {
        let took = per_text(method, &texts).await;
        assert!(took < Duration::from_millis(most), "{method:?}: {took:?}");
    }
}

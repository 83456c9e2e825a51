//! Replays the seeds and findings of fuzzing, and a number of mutated inputs.

#[path = "../../fuzz/promises/mod.rs"]
mod promises;
#[path = "../fuzz/replay.rs"]
mod replay;

use std::path::Path;

/// `changed`: the number of mutated inputs.
fn replay(target: &str, changed: u64) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    replay::replay(&corpus, changed, |input| promises::hold(target, input));
}

#[test]
fn streams_of_events_keep_their_promises() {
    replay("sse", 10_000);
}

#[test]
fn settings_keep_their_promises() {
    replay("config", 300);
}

#[test]
fn categories_keep_their_promises() {
    replay("taxonomy", 3_000);
}

#[test]
fn answers_of_providers_keep_their_promises() {
    replay("answers", 10_000);
}

#[test]
fn requests_for_the_openai_face_keep_their_promises() {
    replay("openai_request", 6_000);
}

//! Replays the seeds and findings of fuzzing, and a number of mutated inputs.

#[path = "../../fuzz/invariants/mod.rs"]
mod invariants;

use std::path::Path;

/// `changed`: the number of mutated inputs.
fn replay_target(target: &str, changed: u64) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    corbie_test_support::fuzz_replay::replay(&corpus, changed, |input| invariants::check_invariants(target, input));
}

#[test]
fn streams_of_events_keep_their_promises() {
    replay_target("sse", 10_000);
}

#[test]
fn settings_keep_their_promises() {
    replay_target("config", 300);
}

#[test]
fn categories_keep_their_promises() {
    replay_target("taxonomy", 3_000);
}

#[test]
fn answers_of_providers_keep_their_promises() {
    replay_target("answers", 10_000);
}

#[test]
fn requests_for_the_openai_face_keep_their_promises() {
    replay_target("openai_request", 6_000);
}

//! Invariants of the program for arbitrary bytes. The fuzzer searches for a counterexample; a test replays the corpus.

mod answers;
mod config;
mod openai_request;
mod sse;
mod stream_assembly;
mod taxonomy;

/// Asserts the invariants of the target for these bytes.
pub(crate) fn check_invariants(target: &str, bytes: &[u8]) {
    match target {
        "sse" => sse::check_invariants(bytes),
        "config" => config::check_invariants(bytes),
        "taxonomy" => taxonomy::check_invariants(bytes),
        "answers" => answers::check_invariants(bytes),
        "openai_request" => openai_request::check_invariants(bytes),
        other => panic!("there is no target `{other}`"),
    }
}

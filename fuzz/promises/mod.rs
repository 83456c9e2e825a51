//! Invariants of the program for arbitrary bytes. The fuzzer searches for a counterexample; a test replays the corpus.

mod answers;
mod config;
mod openai_request;
mod pieces;
mod sse;
mod taxonomy;

/// Asserts the invariants of the target for these bytes.
pub(crate) fn hold(target: &str, bytes: &[u8]) {
    match target {
        "sse" => sse::hold(bytes),
        "config" => config::hold(bytes),
        "taxonomy" => taxonomy::hold(bytes),
        "answers" => answers::hold(bytes),
        "openai_request" => openai_request::hold(bytes),
        other => panic!("there is no target `{other}`"),
    }
}

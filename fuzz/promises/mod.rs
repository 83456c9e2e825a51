//! What the program promises for any bytes. The fuzzer looks for a counterexample; a test replays what it found.

mod answers;
mod config;
mod openai_request;
mod pieces;
mod sse;
mod taxonomy;

/// What is true of bytes given to the target of this name.
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

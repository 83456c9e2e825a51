//! Library invariants for arbitrary bytes. The fuzzer searches for a counterexample; a test replays the corpus.

mod decode;
mod http;
mod http_responses;

/// Asserts the invariants of the target for these bytes.
pub(crate) fn check_invariants(target: &str, bytes: &[u8]) {
    match target {
        "decode" => decode::check_invariants(bytes),
        "http" => http::check_invariants(bytes),
        other => panic!("there is no target `{other}`"),
    }
}

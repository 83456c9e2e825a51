//! Library invariants for arbitrary bytes. The fuzzer searches for a counterexample; a test replays the corpus.

mod answers;
mod decode;
mod http;

/// Asserts the invariants of the target for these bytes.
pub(crate) fn hold(target: &str, bytes: &[u8]) {
    match target {
        "decode" => decode::hold(bytes),
        "http" => http::hold(bytes),
        other => panic!("there is no target `{other}`"),
    }
}

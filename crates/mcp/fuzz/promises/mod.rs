//! What the library promises for any bytes. The fuzzer looks for a counterexample; a test replays what it found.

mod answers;
mod decode;
mod http;

/// What is true of bytes given to the target of this name.
pub(crate) fn hold(target: &str, bytes: &[u8]) {
    match target {
        "decode" => decode::hold(bytes),
        "http" => http::hold(bytes),
        other => panic!("there is no target `{other}`"),
    }
}

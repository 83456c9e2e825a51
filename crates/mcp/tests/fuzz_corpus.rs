//! Replays the fuzz corpus against the decoder and a running server.

mod fixture;
#[path = "../fuzz/invariants/mod.rs"]
mod invariants;

use std::path::{Path, PathBuf};

use corbie_mcp::TrustLevel;
use corbie_test_support::fuzz_replay;
use fixture::peer::Stdio;
use serde_json::json;
use tokio::io::AsyncWriteExt;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

fn corpus() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder("decode")).expect("the corpus is committed");
    let inputs: Vec<_> = files.map(|file| std::fs::read(file.expect("entry").path()).expect("readable")).collect();
    assert!(inputs.len() > 100, "only {} inputs", inputs.len());
    inputs
}

#[test]
fn the_decoder_keeps_its_promises() {
    fuzz_replay::replay(&folder("decode"), 5_000, |input| invariants::check_invariants("decode", input));
}

#[test]
fn the_http_front_keeps_its_promises() {
    fuzz_replay::replay(&folder("http"), 1_000, |input| invariants::check_invariants("http", input));
}

#[tokio::test]
async fn a_server_that_was_sent_the_whole_corpus_still_serves() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Untrusted);
    for input in corpus() {
        peer.writer.write_all(&input).await.expect("the server reads");
        peer.writer.write_all(b"\n").await.expect("the server reads");
        peer.send(&json!({ "jsonrpc": "2.0", "id": "after", "method": "ping" }).to_string()).await;
        // Regardless of the answers to the input, the ping is answered after it.
        while peer.receive().await["id"] != "after" {}
    }
}

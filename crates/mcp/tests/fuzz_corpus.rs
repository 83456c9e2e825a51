//! Replays what fuzzing found, against the decoder and against a running server.

mod fixture;
#[path = "../fuzz/promises.rs"]
mod promises;

use std::path::Path;

use corbie_mcp::TrustLevel;
use fixture::peer::Stdio;
use serde_json::json;
use tokio::io::AsyncWriteExt;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/decode");
    let files = std::fs::read_dir(folder).expect("the corpus is committed");
    let inputs: Vec<_> = files.map(|file| std::fs::read(file.expect("entry").path()).expect("readable")).collect();
    assert!(inputs.len() > 100, "only {} inputs", inputs.len());
    inputs
}

#[test]
fn the_decoder_keeps_its_promises_on_the_whole_corpus() {
    corpus().iter().for_each(|input| promises::decoding_keeps(input));
}

#[tokio::test]
async fn a_server_that_was_sent_the_whole_corpus_still_serves() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Untrusted);
    for input in corpus() {
        peer.writer.write_all(&input).await.expect("the server reads");
        peer.writer.write_all(b"\n").await.expect("the server reads");
        peer.send(&json!({ "jsonrpc": "2.0", "id": "after", "method": "ping" }).to_string()).await;
        // Whatever was answered to the input, the ping is answered after it.
        while peer.receive().await["id"] != "after" {}
    }
}

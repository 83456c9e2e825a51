#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Golden tests of the provider protocols: requests that we send for a chat, and responses that we parse.
//!
//! In the folder of a protocol, `<case>.chat.json` becomes `<case>.request.json`, `<case>.response.json` becomes
//! `<case>.completion.json`, `<case>.stream.txt` becomes `<case>.deltas.json`, and a request in this protocol,
//! `<case>.caller.json`, is parsed as `<case>.typed.json`. For OpenAI, `<case>.rendered.json` is the response to a
//! caller, made from a response or from that of another protocol in `<case>.foreign.json`. `CORBIE_BLESS=1` rewrites
//! the expected files; review the diff before you commit it.

#[path = "providers/anthropic/mod.rs"]
mod anthropic;
#[path = "providers/embeddings.rs"]
mod embeddings;
#[path = "providers/golden.rs"]
mod golden;
#[path = "providers/google/mod.rs"]
mod google;
#[path = "providers/known_models.rs"]
mod known_models;
#[path = "providers/openai/mod.rs"]
mod openai;
#[path = "providers/protocol_fixture.rs"]
mod protocol_fixture;
#[path = "providers/round_trip.rs"]
mod round_trip;
#[path = "providers/stream_chunks.rs"]
mod stream_chunks;
#[path = "providers/translation.rs"]
mod translation;

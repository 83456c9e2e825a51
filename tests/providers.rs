#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The protocols of other companies, played from files: what we send for a chat, and what we make of an answer.
//!
//! In the folder of a protocol, `<case>.chat.json` becomes `<case>.request.json`, `<case>.response.json` becomes
//! `<case>.completion.json`, `<case>.stream.txt` becomes `<case>.deltas.json`, and a request in this protocol,
//! `<case>.caller.json`, is understood as `<case>.typed.json`. For OpenAI, `<case>.rendered.json` is what a caller gets,
//! made of a response or of another protocol's answer in `<case>.foreign.json`. `CORBIE_BLESS=1` rewrites what we make;
//! read the difference before you keep it.

#[path = "providers/anthropic/mod.rs"]
mod anthropic;
#[path = "providers/chunks.rs"]
mod chunks;
#[path = "providers/crossing.rs"]
mod crossing;
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
#[path = "providers/player.rs"]
mod player;
#[path = "providers/round_trip.rs"]
mod round_trip;

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! OpenAI's protocol, played from files: what we send for a chat, and what we make of an answer.
//!
//! In `providers/openai`, `<case>.caller.json` is a request in this protocol that becomes `<case>.chat.json`; other
//! `<case>.chat.json` become `<case>.request.json`, `<case>.response.json` becomes `<case>.completion.json`,
//! `<case>.stream.txt` becomes `<case>.deltas.json`. What a caller gets is `<case>.rendered.json`, made of a response or
//! of another protocol's answer in `<case>.foreign.json`. `CORBIE_BLESS=1` rewrites what we make; read the difference
//! before you keep it.

#[path = "providers/openai/answers.rs"]
mod answers;
#[path = "providers/openai/failures.rs"]
mod failures;
#[path = "providers/openai/models.rs"]
mod models;
#[path = "providers/openai/player.rs"]
mod player;
#[path = "providers/openai/requests.rs"]
mod requests;
#[path = "providers/openai/streams.rs"]
mod streams;

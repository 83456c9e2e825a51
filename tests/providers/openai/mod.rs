//! OpenAI's protocol, and what compatible servers make of it.

mod answers;
mod chunks;
mod failures;
mod models;
mod requests;
mod streams;

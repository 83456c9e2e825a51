//! OpenAI's protocol and its variants in compatible servers.

mod answers;
mod chunks;
mod errors;
mod models;
mod requests;
mod streams;

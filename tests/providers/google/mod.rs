//! Google's protocol.

mod answers;
mod errors;
mod passthrough;
mod requests;

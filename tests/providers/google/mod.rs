//! Google's protocol.

mod answers;
mod errors;
mod same_protocol;
mod wire;

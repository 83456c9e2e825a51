//! Reads documents in processes that a hostile file can neither escape nor exhaust (S-12).
//!
//! A worker is this same program, started with a hidden command. Before it sees a byte it gives up files, the network and
//! starting programs, and bounds its own memory; then it takes one document after the other on stdin and says on stdout
//! what it found, page by page. Whoever waits for it ends it when its time is up, and keeps the pages that were done.
//!
//! What is there only as a picture is drawn and read in the worker as well. Where Tesseract is to read it, the worker
//! hands the picture back, since it cannot start programs.
//!
//! A file may break the worker that reads it, which then sees the files that come after it. So a worker reads the documents
//! of one tenant only: one caller, and one knowledge base of theirs.

mod budget;
pub mod child;
mod confine;
mod eyes;
mod message;
mod pool;
mod process;
mod reading;
mod seeing;
mod tesseract;
mod wire;
mod words;

pub use confine::has_landlock;
pub use message::Ocr;
pub use pool::{Error, File, Pool, Read, Tenant, Told};

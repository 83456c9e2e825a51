//! Sandboxed worker processes for text extraction and OCR, which a hostile file can neither escape nor exhaust (S-12).
//!
//! A worker is this same binary, started with a hidden command. Before it reads any input it drops access to files,
//! network and processes, and limits its memory. It then reads documents from stdin and writes the extracted pages to
//! stdout. The parent kills it at its timeout and retains the pages that were done.
//!
//! Pages without text are rendered and recognized in the worker as well. If Tesseract is configured, the worker sends
//! the image to the parent, because it cannot start processes.
//!
//! A file may compromise the worker that extracts it, and that worker would then see later files. A worker therefore
//! serves one tenant only: one caller and one of the caller's knowledge bases.

mod budget;
pub mod child;
mod exit_status;
mod extraction;
mod ipc;
mod message;
mod ocr;
mod ocr_text;
mod ocr_threads;
mod pool;
mod process;
mod sandbox;
mod tesseract;

pub use message::OcrMode;
pub use pool::{Error, Extraction, InputFile, Tenant, WorkerPool, WorkerProgress};
pub use sandbox::has_landlock;

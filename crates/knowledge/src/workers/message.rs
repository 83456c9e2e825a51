//! IPC messages between corbie and a worker: a length, followed by JSON. The bytes of a document follow its job
//! unencoded, and so do the pixels of an image.

use std::io;

use corbie_extract::{Format, Limits, Page, Summary};
use serde::{Deserialize, Serialize};

use super::ocr_text::{OcrText, TextSource};

/// A document to extract. Its bytes follow.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerJob {
    /// Format according to the file name.
    pub(super) format_hint: Option<Format>,
    /// File name, if any.
    pub(super) name: Option<String>,
    pub(super) full: bool,
    pub(super) limits: Limits,
    pub(super) ocr: OcrConfig,
    /// Maximum number of OCR jobs. Each has a separate timeout.
    pub(super) max_looks: usize,
    /// CPU time for everything except OCR, in seconds: the soft limit.
    pub(super) cpu_seconds: u64,
    /// CPU time for this and all later documents, in seconds: the hard limit, set with the first document.
    pub(super) cpu_lifetime: u64,
    pub(super) length: u64,
}

/// OCR configuration of a job.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct OcrConfig {
    pub(super) mode: OcrMode,
    /// Whether the worker sends images to the parent instead of running OCR itself.
    pub(super) is_delegated: bool,
    /// Additional CPU seconds for each OCR job.
    pub(super) cpu_seconds_per_image: u64,
}

/// When OCR runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OcrMode {
    Off,
    /// On pages and images with little or no text (K-33).
    #[default]
    Auto,
    /// Also on pages with text (K-22).
    Force,
}

/// A message from a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WorkerMessage {
    /// The sandbox is active, and the worker waits for documents.
    Ready,
    /// The sandbox cannot be entered, and the worker exits.
    SandboxFailed {
        why: String,
    },
    /// Extraction has started, with the detected format.
    Started {
        format: Format,
    },
    /// Number of pages.
    Pages {
        count: u32,
    },
    /// An OCR job for a page, or an image on it, starts.
    OcrStarted {
        page: u32,
    },
    /// The oldest unfinished OCR job is done.
    OcrFinished,
    /// An image for OCR by the parent. Its pixels follow, one byte of gray each. The worker then waits for [`OcrText`].
    RecognizeImage {
        width: u32,
        height: u32,
    },
    Page {
        page: Page,
        origin: TextSource,
    },
    /// All pages are done.
    Done {
        summary: Box<Summary>,
        /// Why OCR failed for some images, if it did.
        ocr_error: Option<String>,
        /// Whether the file is an image in which OCR found no text.
        wordless: bool,
    },
    /// Extraction failed. `kind` is a stable code, `message` is for display.
    Failed {
        kind: String,
        message: String,
    },
}

/// Reply to [`WorkerMessage::RecognizeImage`].
pub(super) type OcrResult = Result<OcrText, String>;

/// Maximum size of a message.
pub(super) const MAX_MESSAGE_BYTES: usize = 128 << 20;
/// Maximum size of all messages of one document. The parent holds them in memory.
pub(super) const MAX_DOCUMENT_BYTES: usize = 512 << 20;

/// Serializes a message with its length prefix.
pub(super) fn encode_frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = FrameBuffer(vec![0; 4]);
    serde_json::to_writer(&mut frame, message)?;
    let FrameBuffer(mut bytes) = frame;
    let length = bytes.len() as u32 - 4;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Buffer with a size limit.
struct FrameBuffer(Vec<u8>);

impl io::Write for FrameBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_MESSAGE_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parses and checks the length prefix.
pub(super) fn frame_length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length <= MAX_MESSAGE_BYTES { Ok(length) } else { Err(io::ErrorKind::InvalidData.into()) }
}

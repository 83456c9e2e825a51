//! What is said between corbie and a worker: a length, and that many bytes of JSON. A document's own bytes follow its
//! job as they are, and so do the dots of a picture.

use std::io;

use corbie_extract::{Format, Limits, Page, Summary};
use serde::{Deserialize, Serialize};

use super::words::{Origin, Words};

/// A document to read. Its bytes follow.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// What its name says it is.
    pub(super) named: Option<Format>,
    /// Its name, if it has one.
    pub(super) name: Option<String>,
    pub(super) full: bool,
    pub(super) limits: Limits,
    pub(super) sight: Sight,
    /// How often it may look, each time for as long as that may take.
    pub(super) max_looks: usize,
    /// Processor time for everything but OCR, in seconds: the soft limit.
    pub(super) cpu_seconds: u64,
    /// Processor time for this and all later documents, in seconds: the hard limit, set with the first one.
    pub(super) cpu_lifetime: u64,
    pub(super) length: u64,
}

/// How a worker reads what is there as a picture.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Sight {
    pub(super) ocr: Ocr,
    /// It asks whoever gave it the document, instead of reading itself.
    pub(super) asks: bool,
    /// How many more seconds of a processor each look may take.
    pub(super) look_seconds: u64,
}

/// When text is read from pictures of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ocr {
    Off,
    /// Where there is no other text, or hardly any (K-33).
    #[default]
    Auto,
    /// Also where there is (K-22).
    Force,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub(super) enum Said {
    /// It is confined, and waits for documents.
    Ready,
    /// It could not be confined, and reads nothing.
    Unfit {
        why: String,
    },
    /// It has begun, with a document of this format.
    Began {
        format: Format,
    },
    /// How many pages there are.
    Pages {
        count: u32,
    },
    /// It begins to read a page, or a picture on it, by looking.
    Looking {
        page: u32,
    },
    /// What it looked at first, of what it still looks at, is read.
    Looked,
    /// A picture that it cannot read itself. Its dots follow, a byte of gray each, and then it waits for [`Words`].
    Show {
        width: u32,
        height: u32,
    },
    Page {
        page: Page,
        origin: Origin,
    },
    /// All pages are done.
    Done {
        summary: Box<Summary>,
        /// Why some pictures were not read, if so.
        unread: Option<String>,
        /// The file is a picture, and it was looked at for words in vain.
        wordless: bool,
    },
    /// It cannot be read; `kind` stays the same, `message` is for people.
    Failed {
        kind: String,
        message: String,
    },
}

/// What is answered to [`Said::Show`].
pub(super) type Shown = Result<Words, String>;

/// Nothing that is said is larger.
pub(super) const LARGEST: usize = 128 << 20;
/// Nor is all that is said about one document. What is said is kept by whoever listens.
pub(super) const LARGEST_DOCUMENT: usize = 512 << 20;

/// What goes over the wire.
pub(super) fn framed(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = Frame(vec![0; 4]);
    serde_json::to_writer(&mut frame, message)?;
    let Frame(mut bytes) = frame;
    let length = bytes.len() as u32 - 4;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Grows to what may be said at most.
struct Frame(Vec<u8>);

impl io::Write for Frame {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long the next message is.
pub(super) fn length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length <= LARGEST { Ok(length) } else { Err(io::ErrorKind::InvalidData.into()) }
}

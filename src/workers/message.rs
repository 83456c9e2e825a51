//! What is said between corbie and a worker: a length, and that many bytes of JSON. A document's own bytes follow its
//! job as they are.

use std::io;

use corbie_extract::{Format, Limits, Page, Summary};
use serde::{Deserialize, Serialize};

/// A document to read. Its bytes follow.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// What its name says it is.
    pub(super) named: Option<Format>,
    pub(super) full: bool,
    pub(super) limits: Limits,
    /// How many seconds of a processor it may take.
    pub(super) cpu_seconds: u64,
    pub(super) length: u64,
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
    Page {
        page: Page,
    },
    /// All pages are done.
    Done {
        summary: Summary,
    },
    /// It cannot be read; `kind` stays the same, `message` is for people.
    Failed {
        kind: String,
        message: String,
    },
}

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

//! Document types of the knowledge base.
//!
//! Times are milliseconds since 1970, UTC. Keys are assigned by the store: they are monotonic and never reused, so an
//! index may refer to them. IDs are visible to callers.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// Defines a UUID newtype.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub uuid::Uuid);

        impl $name {
            /// A new random ID.
            pub fn random() -> $name {
                $name(uuid::Uuid::new_v4())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<$name, uuid::Error> {
                text.parse().map($name)
            }
        }
    };
}
pub(crate) use id;

id! {
    /// ID of a document, visible to callers.
    DocumentId
}

id! {
    /// ID of a chunk, visible to callers.
    ChunkId
}

/// The name of a knowledge base. Invariant: 1 to 64 of `A-Z a-z 0-9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaseName(String);

/// An invalid name of a knowledge base.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a knowledge base name must have 1 to 64 letters, digits, `.`, `_` or `-`")]
pub struct InvalidBaseName;

/// Completeness of the extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Completed,
    /// Some of it could not be extracted.
    Partial,
}

/// How a document was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// By path.
    Added,
    /// By the watcher.
    Watched,
    /// By upload.
    Uploaded,
}

/// A stored document.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentRecord {
    pub key: u64,
    pub id: DocumentId,
    pub base: BaseName,
    pub filename: String,
    /// Path of its file. `None` if the file is not retained, as for uploads.
    pub path: Option<String>,
    pub origin: Origin,
    /// Title from the file's metadata.
    pub title: Option<String>,
    pub format: String,
    pub size_bytes: u64,
    pub sha256: [u8; 32],
    pub date_added: Millis,
    pub updated: Millis,
    pub status: Status,
    /// Extraction method: `text_extraction`, `ocr`, `hybrid`, `image_analysis`.
    pub method: String,
    /// Metadata set by users.
    pub metadata: Map<String, Value>,
    /// Embedding model of its vectors. Vectors of different models are not comparable.
    pub model: String,
    pub page_count: u32,
    pub chunk_count: u32,
    pub vector_count: u32,
    /// Notice for the user, such as why the document is partial.
    pub warning: Option<String>,
}

/// A document to store.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// ID of the document that it replaces. That document's ID and date are retained, and `id` is ignored.
    pub replaces: Option<DocumentId>,
    pub id: DocumentId,
    pub base: BaseName,
    pub filename: String,
    pub path: Option<String>,
    pub origin: Origin,
    pub title: Option<String>,
    pub format: String,
    pub size_bytes: u64,
    pub sha256: [u8; 32],
    pub status: Status,
    pub method: String,
    pub metadata: Map<String, Value>,
    pub model: String,
    pub warning: Option<String>,
    pub pages: Vec<DocumentPage>,
    pub chunks: Vec<NewChunk>,
}

/// Text of a page, slide or sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPage {
    /// From 1, unique within the document.
    pub number: u32,
    /// Name of a sheet, or the printed page number.
    pub label: Option<String>,
    pub text: String,
}

/// A span of characters on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharSpan {
    pub page: u32,
    /// Offsets in characters of the page's text. `end` is exclusive.
    pub start: u32,
    pub end: u32,
    /// Where its text starts in the chunk, in characters. `None` if the chunk has text of one page only, or was stored
    /// before these offsets were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_chunk: Option<u32>,
    /// Number of the chunk's windows that have its text, in order. No window extends across two pages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub windows: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A chunk to store.
#[derive(Debug, Clone)]
pub struct NewChunk {
    pub text: String,
    /// First and last page; 0 without pages.
    pub pages: (u32, u32),
    /// Spans in the pages' text, one per page, including the overlap with the previous chunk. Empty if unknown.
    pub spans: Vec<CharSpan>,
    /// Headings above it.
    pub headings: Vec<String>,
    pub tokens: u32,
    /// One per embedded window. All vectors of a document have the same length.
    pub vectors: Vec<Vec<f32>>,
}

/// Result of storing a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// Stored and searchable.
    Written(WrittenDocument),
    /// Not stored: another document of the base has identical content.
    DuplicateContent(DocumentId),
    /// Not stored: another document of the base has its path.
    PathTaken(DocumentId),
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenDocument {
    pub key: u64,
    pub id: DocumentId,
    /// Keys of its chunks, in order.
    pub chunks: Range<u64>,
    /// Sequence number of the change.
    pub sequence: u64,
}

/// A removed document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedDocument {
    pub key: u64,
    pub filename: String,
    pub chunks: u64,
    pub vectors: u64,
    pub sequence: u64,
}

/// New owner data of a document that a user adds.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub origin: Origin,
    pub filename: String,
    pub path: Option<String>,
    pub metadata: Map<String, Value>,
}

/// A retrieved chunk with the data of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundChunk {
    pub key: u64,
    pub id: ChunkId,
    pub ordinal: u32,
    pub text: String,
    pub pages: (u32, u32),
    pub spans: Vec<CharSpan>,
    pub headings: Vec<String>,
    pub tokens: u32,
    pub document: u64,
    pub document_id: DocumentId,
    pub base: BaseName,
    pub filename: String,
    pub title: Option<String>,
    pub format: String,
    pub date_added: Millis,
    pub metadata: Map<String, Value>,
}

/// A chunk with its position in the document.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedChunk {
    pub id: ChunkId,
    pub ordinal: u32,
    pub pages: (u32, u32),
    pub spans: Vec<CharSpan>,
    /// First characters of the chunk, if its offsets are unknown.
    pub excerpt: Option<String>,
}

/// Totals of a base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub documents: u64,
    pub chunks: u64,
    pub vectors: u64,
    pub size_bytes: u64,
    /// Time of the last write or removal; for a base never used, when the store was created.
    pub last_updated: Option<Millis>,
}

// === impl BaseName ===

impl BaseName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The base used when a request names none.
impl Default for BaseName {
    fn default() -> BaseName {
        BaseName("default".to_owned())
    }
}

impl fmt::Display for BaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BaseName {
    type Err = InvalidBaseName;

    fn from_str(text: &str) -> Result<BaseName, InvalidBaseName> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for BaseName {
    type Error = InvalidBaseName;

    fn try_from(text: String) -> Result<BaseName, InvalidBaseName> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        match (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            true => Ok(BaseName(text)),
            false => Err(InvalidBaseName),
        }
    }
}

impl From<BaseName> for String {
    fn from(name: BaseName) -> String {
        name.0
    }
}

// === impl DocumentId ===

impl From<Uuid> for DocumentId {
    fn from(id: Uuid) -> DocumentId {
        DocumentId(id)
    }
}

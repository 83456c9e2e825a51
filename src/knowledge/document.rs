//! Documents of a knowledge base, as they are kept and as they are shown.
//!
//! Times are milliseconds since 1970, UTC. Keys are the store's own numbers: they grow, and none is ever given twice, so
//! an index may hold on to them. Ids are what callers see.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// A UUID that means one kind of thing.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub uuid::Uuid);

        impl $name {
            /// One that nobody has had before.
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
    /// A document, for callers.
    DocumentId
}

id! {
    /// A piece of a document, for callers.
    ChunkId
}

/// The name of a knowledge base. Invariant: 1 to 64 of `A-Z a-z 0-9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaseName(String);

/// A name that no base can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a knowledge base is named with 1 to 64 letters, digits, `.`, `_` or `-`")]
pub struct BadBaseName;

/// What was read of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Completed,
    /// Some of it could not be read.
    Partial,
}

/// How a document came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Somebody named its path.
    Added,
    /// It stands in a folder that is watched.
    Watched,
    /// It came with a request.
    Uploaded,
}

/// A document as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub key: u64,
    pub id: DocumentId,
    pub base: BaseName,
    pub filename: String,
    /// Where it was read, if it still stands there.
    pub path: Option<String>,
    pub origin: Origin,
    /// What it says its title is.
    pub title: Option<String>,
    pub format: String,
    pub size_bytes: u64,
    pub sha256: [u8; 32],
    pub date_added: Millis,
    pub updated: Millis,
    pub status: Status,
    /// How its text came about: `text_extraction`, `ocr`, `hybrid`, `image_analysis`.
    pub method: String,
    /// What its users say about it.
    pub metadata: Map<String, Value>,
    /// Whose vectors its chunks have; those of two models do not compare.
    pub model: String,
    pub page_count: u32,
    pub chunk_count: u32,
    pub vector_count: u32,
    /// What its reader should know, such as why it is partial.
    pub warning: Option<String>,
}

/// A document to keep.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// Where it takes the place of another: that one's id and date are kept, and this `id` is not looked at.
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
    pub pages: Vec<Page>,
    pub chunks: Vec<NewChunk>,
}

/// A page, slide or sheet, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Counted from 1; no two of a document have the same.
    pub number: u32,
    /// The name of a sheet, or what stands on a page as its number.
    pub label: Option<String>,
    pub text: String,
}

/// A run of characters on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    pub page: u32,
    /// In characters of the page's text, as `end`, which is not part of it.
    pub start: u32,
    pub end: u32,
}

/// A chunk to keep.
#[derive(Debug, Clone)]
pub struct NewChunk {
    pub text: String,
    /// The first page and the last; 0 where there are no pages.
    pub pages: (u32, u32),
    /// Where it stands, one for each page; what it repeats of the chunk before it is in it. None where it is not known.
    pub stretches: Vec<Stretch>,
    /// The headings it stands under.
    pub path: Vec<String>,
    pub tokens: u32,
    /// One for each window of it that the model read. All of a document have the same length.
    pub vectors: Vec<Vec<f32>>,
}

/// What became of a document that was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is there, and findable.
    Written(Written),
    /// Another document of the base says the same, byte for byte; nothing was written.
    Same(DocumentId),
    /// Another document of the base has its path; nothing was written.
    PathTaken(DocumentId),
}

/// A document that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub key: u64,
    pub id: DocumentId,
    /// The keys of its chunks, in their order.
    pub chunks: Range<u64>,
    /// The number of the change.
    pub sequence: u64,
}

/// A document that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub key: u64,
    pub filename: String,
    pub chunks: u64,
    pub vectors: u64,
    pub sequence: u64,
}

/// What a user who adds a document says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub origin: Origin,
    pub filename: String,
    pub path: Option<String>,
    pub metadata: Map<String, Value>,
}

/// A chunk that was found, with what a reader wants to know of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundChunk {
    pub key: u64,
    pub id: ChunkId,
    pub ordinal: u32,
    pub text: String,
    pub pages: (u32, u32),
    pub stretches: Vec<Stretch>,
    pub path: Vec<String>,
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

/// A chunk as a reader of its document meets it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedChunk {
    pub id: ChunkId,
    pub ordinal: u32,
    pub pages: (u32, u32),
    pub stretches: Vec<Stretch>,
    /// How it begins, where nobody knows where it stands.
    pub beginning: Option<String>,
}

/// What a base holds in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub documents: u64,
    pub chunks: u64,
    pub vectors: u64,
    pub size_bytes: u64,
    /// When something was last written or removed.
    pub last_updated: Option<Millis>,
}

// === impl BaseName ===

impl BaseName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The base of those who name none.
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
    type Err = BadBaseName;

    fn from_str(text: &str) -> Result<BaseName, BadBaseName> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for BaseName {
    type Error = BadBaseName;

    fn try_from(text: String) -> Result<BaseName, BadBaseName> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        match (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            true => Ok(BaseName(text)),
            false => Err(BadBaseName),
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

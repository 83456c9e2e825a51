//! Updates to the index.
//!
//! Keys are never reused, and the content of a key never changes: a document with new text gets new chunk keys. A
//! segment saved long ago is therefore still valid for the keys it has.

/// One update. All updates of a call become visible atomically.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexUpdate {
    /// Adds a document, or replaces the one with the same key.
    Put(Document),
    Remove {
        document: u64,
    },
    /// Changes the filterable attributes of a document without touching its text.
    SetAttributes {
        document: u64,
        added: i64,
        facets: Vec<Facet>,
    },
    /// Removes all documents.
    Clear,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub key: u64,
    /// Milliseconds since the Unix epoch.
    pub added: i64,
    pub facets: Vec<Facet>,
    /// In reading order, which defines the neighbours of a chunk.
    pub chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    pub key: u64,
    pub text: String,
    /// File name, title, headings. They are searched too, with a lower weight than the text.
    pub context: String,
    /// One vector per window of the text. Vectors with the wrong dimension or without a direction are ignored.
    pub vectors: Vec<Vec<f32>>,
}

/// A filterable attribute such as a tag or the file type. A document may have several values for a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facet {
    pub key: String,
    pub value: String,
}

/// A document of the store, identified by its keys: see [`Index::restore`](crate::Index::restore).
#[derive(Debug, Clone, PartialEq)]
pub struct LiveDocument {
    pub key: u64,
    pub added: i64,
    pub facets: Vec<Facet>,
    /// Keys of its chunks, in reading order.
    pub chunks: Vec<u64>,
}

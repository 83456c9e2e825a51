//! What an owner tells the index.
//!
//! Keys are never reused, and what a key stands for never changes: a document with other text has other chunk keys.
//! That is why a segment saved long ago is still true for the keys it has.

/// A step from one state of the index to the next. All steps of one call become visible at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Adds a document, or replaces the one of the same key.
    Put(Document),
    Remove {
        document: u64,
    },
    /// Changes what filters see of a document, and leaves its text alone.
    Describe {
        document: u64,
        added: i64,
        facets: Vec<Facet>,
    },
    /// Forgets all documents.
    Clear,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub key: u64,
    /// Milliseconds since 1970.
    pub added: i64,
    pub facets: Vec<Facet>,
    /// In reading order: this is what neighbours are.
    pub chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    pub key: u64,
    pub text: String,
    /// Name of the file, title, headings. They are searched too, and count less than the text.
    pub context: String,
    /// One for each window of the text. A vector of another length than the index has, or without direction, is
    /// left out.
    pub vectors: Vec<Vec<f32>>,
}

/// Something to filter by, such as a tag or the kind of file. A document may have several values for a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facet {
    pub key: String,
    pub value: String,
}

/// A document that the store has, named by its keys: see [`Index::restore`](crate::Index::restore).
#[derive(Debug, Clone, PartialEq)]
pub struct LiveDocument {
    pub key: u64,
    pub added: i64,
    pub facets: Vec<Facet>,
    /// Keys of its chunks, in reading order.
    pub chunks: Vec<u64>,
}

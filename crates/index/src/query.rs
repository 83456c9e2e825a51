//! Query and hit types.

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub text: &'a str,
    /// Embedding of the text. If it is missing or has the wrong dimension, only words are searched.
    pub vector: Option<&'a [f32]>,
    pub filter: Option<&'a Filter>,
    /// Maximum number of hits.
    pub top: usize,
    pub mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Hybrid,
    Words,
    Vectors,
}

/// Restricts the searched documents. An empty filter allows all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Each key must have one of its values. All keys must match; a key without values matches nothing.
    pub all: Vec<(String, Vec<String>)>,
    /// Earliest date, inclusive, in milliseconds since the Unix epoch.
    pub added_from: Option<i64>,
    /// Latest date, inclusive.
    pub added_to: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub chunk: u64,
    pub document: u64,
    /// From 0 to 1. Hits are sorted by it.
    pub relevance: f32,
    /// BM25.
    pub words: f32,
    /// Cosine of the chunk's best window, 0 if it has no vector.
    pub similarity: f32,
}

//! What is asked, and what comes back.

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub text: &'a str,
    /// The direction of the text. Without one, or with one of another length than the index has, words decide.
    pub vector: Option<&'a [f32]>,
    pub filter: Option<&'a Filter>,
    /// How many hits are wanted at most.
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

/// Which documents may be found. An empty filter allows all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// For each key, any of the values. All keys have to be met; a key without values is met by nothing.
    pub all: Vec<(String, Vec<String>)>,
    /// Not added before this, in milliseconds since 1970.
    pub added_from: Option<i64>,
    /// Not added after this.
    pub added_to: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub chunk: u64,
    pub document: u64,
    /// From 0 to 1. Hits come in this order.
    pub relevance: f32,
    /// BM25.
    pub words: f32,
    /// Cosine of the chunk's best window, 0 where there is none.
    pub similarity: f32,
}

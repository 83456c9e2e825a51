//! Size of a knowledge base in memory.

use crate::document::BaseName;

/// Size of one base.
#[derive(Debug, Clone)]
pub struct BaseStats {
    pub base: BaseName,
    pub documents: usize,
    pub chunks: usize,
    /// Memory used by its index in this process, in bytes.
    pub memory_bytes: usize,
}

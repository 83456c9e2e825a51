//! Main content detection (reader view).

use dom_query::Document;
use dom_smoothie::{Config, Readability};

use super::tree;
use crate::Limits;

/// Maximum nodes for main content detection. Larger pages take longer than the result is worth.
const MAX_NODES: usize = 150_000;

/// The readability parser, for main content and metadata.
pub(super) fn reader(document: Document) -> Readability {
    Readability { doc: document, doc_url: None, config: Config::default() }
}

/// The main content as a separate document, if any, and the title that was removed from it.
pub(super) fn find(mut reader: Readability, limits: &Limits) -> Option<(Document, String)> {
    if reader.doc.tree.len() > MAX_NODES {
        return None;
    }
    let article = reader.parse().ok()?;
    Some((tree::parse(&article.content, limits).ok()?, article.title))
}

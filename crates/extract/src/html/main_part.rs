//! The part of a page that it is about.

use dom_query::Document;
use dom_smoothie::{Config, Readability};

use super::tree;
use crate::Limits;

/// Looking through more nodes than this takes longer than the part is worth.
const NODES: usize = 150_000;

/// What looks for the main part, and for what the page says of itself.
pub(super) fn reader(document: Document) -> Readability {
    Readability { doc: document, doc_url: None, config: Config::default() }
}

/// The main part as a page of its own, where there is one, and the title that was left out of it.
pub(super) fn find(mut reader: Readability, limits: &Limits) -> Option<(Document, String)> {
    if reader.doc.tree.len() > NODES {
        return None;
    }
    let article = reader.parse().ok()?;
    Some((tree::parse(&article.content, limits).ok()?, article.title))
}

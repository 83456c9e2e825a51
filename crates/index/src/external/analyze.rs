//! Text analysis of one document for external storage.

use super::{CorpusStats, Posting};
use crate::inverted_index::Builder;
use crate::postings::Cursor;
use crate::update::Document;

/// The terms and statistics of a document, as a store saves them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnalyzedDocument {
    pub stats: CorpusStats,
    /// Terms sorted by their bytes, postings sorted by key.
    pub terms: Vec<(String, Vec<Posting>)>,
}

/// Analyzes the chunks of a document by the same rules as a segment.
pub fn analyze(document: &Document) -> AnalyzedDocument {
    let mut builder = Builder::default();
    builder.add_document(document);
    let words = builder.finish();
    let mut sums = CorpusStats { chunks: document.chunks.len() as u64, ..CorpusStats::default() };
    sums.length = words.lengths.iter().map(|length| u64::from(*length)).sum();
    let languages = words.languages.iter().map(|language| (*language, 1)).collect();
    sums.add(&CorpusStats { languages, ..CorpusStats::default() });
    let term = |at| {
        let term = String::from_utf8_lossy(words.dictionary.term(at)).into_owned();
        let mut postings = Vec::new();
        Cursor::new(words.dictionary.list(at)).read_until(u32::MAX, |chunk, count| {
            let at = chunk as usize;
            postings.push(Posting { key: document.chunks[at].key, count: count as u8, length: words.lengths[at] });
        });
        // Keys need not be in reading order.
        postings.sort_unstable_by_key(|posting: &Posting| posting.key);
        (term, postings)
    };
    AnalyzedDocument { stats: sums, terms: (0..words.dictionary.len()).map(term).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Chunk;

    #[test]
    fn words_come_in_order_with_the_chunks_that_have_them() {
        let chunk = |key, text: &str, context: &str| Chunk {
            key,
            text: text.into(),
            context: context.into(),
            vectors: Vec::new(),
        };
        let chunks = vec![chunk(9, "two invoices", "paid"), chunk(4, "invoice, invoice", ""), chunk(5, "", "")];
        let read = analyze(&Document { key: 1, added: 0, facets: Vec::new(), chunks });
        let posting = |key, count, length| Posting { key, count, length };
        let terms: Vec<(&str, &[Posting])> = read.terms.iter().map(|(term, list)| (&**term, &**list)).collect();
        assert_eq!(
            terms,
            [
                ("invoic", &[posting(4, 4, 4), posting(9, 2, 5)][..]),
                ("paid", &[posting(9, 1, 5)]),
                ("two", &[posting(9, 2, 5)]),
            ]
        );
        assert_eq!(read.stats, CorpusStats { chunks: 3, length: 9, languages: vec![(0, 3)] });
    }
}

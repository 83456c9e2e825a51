//! Which page of a chunk answers a query (K-34).
//!
//! A chunk of a PDF may extend across pages. The page of the sentence with the rarest words of the query is the best,
//! and the vectors of the chunk's windows, none of which extends across two pages, decide where words do not.

use corbie_extract::chunk::sentence_starts;
use corbie_index::match_sentences;

use crate::document::FoundChunk;

/// Weight of the cosine of a page's best window, relative to a sentence with all words of the query. As in ranking.
const SIMILARITY_WEIGHT: f32 = 1.6;
/// Weight of the better of the two sentences beside one: a fact may stand after the sentence that names its subject.
const NEIGHBOUR_WEIGHT: f32 = 0.3;

/// A page's part of a chunk.
struct PagePart<'a> {
    page: u32,
    text: &'a str,
    similarity: f32,
}

/// The page of the best matching sentence, and 0 for a file without pages. `similarities` are those of the chunk's
/// windows with the query, in order; empty if they are unknown.
pub(super) fn best_page(query: &str, chunk: &FoundChunk, similarities: &[f32]) -> u32 {
    let first = chunk.pages.0;
    let Some(parts) = page_parts(chunk, similarities).filter(|_| first > 0) else { return first };
    let sentences: Vec<(usize, &str)> = parts
        .iter()
        .enumerate()
        .flat_map(|(at, part)| split_sentences(part.text).map(move |text| (at, text)))
        .collect();
    let texts: Vec<&str> = sentences.iter().map(|(_, text)| *text).collect();
    let shares = match_sentences(query, &texts);
    let mut scores: Vec<f32> = vec![0.0; parts.len()];
    for (at, (part, _)) in sentences.iter().enumerate() {
        let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let beside = beside.filter(|beside| sentences.get(*beside).is_some_and(|(other, _)| other == part));
        let beside = beside.map(|beside| shares[beside]).fold(0.0, f32::max);
        scores[*part] = scores[*part].max(shares[at] + NEIGHBOUR_WEIGHT * beside);
    }
    let scored =
        parts.iter().zip(&scores).map(|(part, share)| (part.page, share + SIMILARITY_WEIGHT * part.similarity));
    // If several pages match equally, the first one with new text is reported, as for a chunk without a match.
    scored
        .fold((first, None), |(page, best), (other, score)| match best {
            Some(best) if score < best || (score == best && other != first) => (page, Some(best)),
            _ => (other, Some(score)),
        })
        .0
}

/// The first and the last page of a chunk with its overlap; `None` for a file without pages.
pub(super) fn page_range(chunk: &FoundChunk) -> Option<(u32, u32)> {
    let (first, last) = chunk.pages;
    let spans = chunk.spans.iter().filter(|span| span.in_chunk.is_some()).map(|span| span.page);
    (first > 0).then(|| (spans.clone().fold(first, u32::min), spans.fold(last, u32::max)))
}

/// Whether the page has to be looked for.
pub(super) fn has_several_pages(chunk: &FoundChunk) -> bool {
    chunk.pages.0 > 0 && chunk.spans.len() > 1 && chunk.spans.iter().all(|span| span.in_chunk.is_some())
}

/// The parts of a chunk's text; `None` if they are unknown or there is only one.
fn page_parts<'a>(chunk: &'a FoundChunk, similarities: &[f32]) -> Option<Vec<PagePart<'a>>> {
    if !has_several_pages(chunk) {
        return None;
    }
    let windows: usize = chunk.spans.iter().map(|span| span.windows as usize).sum();
    let mut similarities = similarities.iter().copied().filter(|_| windows == similarities.len());
    let mut starts: Vec<usize> = Vec::with_capacity(chunk.spans.len() + 1);
    let mut characters = chunk.text.char_indices().map(|(at, _)| at).chain([chunk.text.len()]).enumerate().peekable();
    for span in &chunk.spans {
        let wanted = span.in_chunk? as usize;
        while characters.next_if(|(number, _)| *number < wanted).is_some() {}
        starts.push(characters.peek().map_or(chunk.text.len(), |(_, at)| *at));
    }
    starts.push(chunk.text.len());
    let parts = chunk.spans.iter().zip(starts.windows(2)).map(|(span, range)| PagePart {
        page: span.page,
        text: chunk.text.get(range[0]..range[1]).unwrap_or_default(),
        similarity: similarities.by_ref().take(span.windows as usize).fold(0.0, f32::max),
    });
    Some(parts.collect())
}

fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    // Lines are separate, because tables and lists have no full stops.
    text.split('\n').flat_map(|line| {
        let mut edges = vec![0];
        edges.extend(sentence_starts(line).into_iter().filter(|start| *start > 0));
        edges.push(line.len());
        let parts: Vec<&str> = edges.windows(2).map(|edge| line[edge[0]..edge[1]].trim()).collect();
        parts.into_iter().filter(|part| !part.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{BaseName, CharSpan, ChunkId, DocumentId};

    const PAGES: [&str; 3] = [
        "The boiler runs at two bar. It is heated with gas.",
        "Dr. Äbele inspects the chimney once a year. The inspection costs ninety euros.",
        "The cistern holds forty litres.",
    ];

    /// A chunk of pages 4 to 6, with one window per page.
    fn chunk() -> FoundChunk {
        let mut at = 0;
        let spans = (4..).zip(PAGES).map(|(page, text)| {
            let length = text.chars().count() as u32;
            let span = CharSpan { page, start: 0, end: length, in_chunk: Some(at), windows: 1 };
            at += length + 2;
            span
        });
        FoundChunk {
            key: 1,
            id: ChunkId::random(),
            ordinal: 0,
            spans: spans.collect(),
            text: PAGES.join("\n\n"),
            pages: (4, 6),
            headings: Vec::new(),
            tokens: 60,
            document: 1,
            document_id: DocumentId::random(),
            base: BaseName::default(),
            filename: "house.pdf".into(),
            title: None,
            format: "pdf".into(),
            date_added: 0,
            metadata: serde_json::Map::new(),
        }
    }

    #[test]
    fn k34_the_page_is_that_of_the_best_sentence() {
        let page = |query: &str| best_page(query, &chunk(), &[]);
        assert_eq!(page("how is the boiler heated"), 4);
        assert_eq!(page("what does the inspection cost"), 5);
        assert_eq!(page("who inspects the chimney"), 5);
        assert_eq!(page("how many litres are in the cistern"), 6);
        assert_eq!(page_range(&chunk()), Some((4, 6)));
    }

    #[test]
    fn k34_where_no_word_matches_the_vectors_decide() {
        assert_eq!(best_page("capacity of the tank", &chunk(), &[0.1, 0.2, 0.6]), 6);
        assert_eq!(best_page("capacity of the tank", &chunk(), &[]), 4);
        // The number of windows is not that of the vectors: they are not used.
        assert_eq!(best_page("capacity of the tank", &chunk(), &[0.1, 0.2]), 4);
    }

    #[test]
    fn k34_a_chunk_without_offsets_keeps_its_first_page() {
        let mut old = chunk();
        old.spans.iter_mut().for_each(|span| span.in_chunk = None);
        assert_eq!(best_page("how many litres are in the cistern", &old, &[]), 4);
        assert_eq!(page_range(&old), Some((4, 6)));
        let without_pages = FoundChunk { pages: (0, 0), ..chunk() };
        assert_eq!((best_page("litres", &without_pages, &[]), page_range(&without_pages)), (0, None));
        let mut broken = chunk();
        broken.spans.iter_mut().for_each(|span| span.in_chunk = Some(u32::MAX));
        assert!((4..=6).contains(&best_page("litres", &broken, &[])));
        broken.spans[1].in_chunk = Some(0);
        assert!((4..=6).contains(&best_page("litres", &broken, &[])));
    }
}

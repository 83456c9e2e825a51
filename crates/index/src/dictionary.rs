//! Term dictionary of a segment: sorted terms and the location of their posting lists.

use crate::postings::{PADDING_BYTES, PostingList};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Dictionary {
    /// All terms, concatenated.
    pub(crate) term_bytes: Vec<u8>,
    /// End offset of each term in `letters`.
    pub(crate) ends: Vec<u32>,
    /// Document frequency of each term, in chunks.
    pub(crate) document_frequencies: Vec<u32>,
    /// Start offset of each term's posting list in `lists`.
    pub(crate) starts: Vec<u32>,
    pub(crate) lists: Vec<u8>,
}

// === impl Dictionary ===

impl Dictionary {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn term(&self, at: usize) -> &[u8] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.term_bytes[from..self.ends[at] as usize]
    }

    pub(crate) fn list(&self, at: usize) -> PostingList<'_> {
        PostingList::new(&self.lists[self.starts[at] as usize..], self.document_frequencies[at] as usize)
    }

    pub(crate) fn find(&self, term: &[u8]) -> Option<PostingList<'_>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.term(middle).cmp(term) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(self.list(middle)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Appends a term, which must sort after all earlier terms, and its posting list.
    pub(crate) fn push(&mut self, term: &[u8], postings: &[crate::postings::Posting], lengths: &[u16]) {
        self.term_bytes.extend(term);
        self.ends.push(self.term_bytes.len() as u32);
        self.document_frequencies.push(postings.len() as u32);
        self.starts.push(self.lists.len() as u32);
        crate::postings::write_list(postings, lengths, &mut self.lists);
    }

    pub(crate) fn finish(&mut self) {
        self.lists.extend([0; PADDING_BYTES]);
        self.term_bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.document_frequencies.shrink_to_fit();
        self.starts.shrink_to_fit();
        self.lists.shrink_to_fit();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.term_bytes.len()
            + self.lists.len()
            + (self.ends.len() + self.document_frequencies.len() + self.starts.len()) * 4
    }

    /// Whether all offsets are in bounds and all lists are valid. The bytes may come from an untrusted file.
    pub(crate) fn is_valid(&self, lengths: &[u16]) -> bool {
        let terms = self.len();
        if self.document_frequencies.len() != terms || self.starts.len() != terms || self.lists.len() < PADDING_BYTES {
            return false;
        }
        let ends_rise =
            self.ends.is_sorted() && self.ends.last().is_none_or(|end| *end as usize == self.term_bytes.len());
        let starts_lie_inside = self.starts.iter().all(|start| *start as usize <= self.lists.len() - PADDING_BYTES);
        ends_rise
            && starts_lie_inside
            && (1..terms).all(|at| self.term(at - 1) < self.term(at))
            && (0..terms).all(|at| {
                self.document_frequencies[at] as usize <= lengths.len()
                    && self.list(at).is_valid(lengths.len(), lengths)
            })
    }
}

//! Checksums for comparing two stores.
//!
//! Everything except vectors is compared byte by byte. SQLite stores vectors as quantized codes and PostgreSQL as half
//! precision, so vectors are compared by direction. PostgreSQL cannot store a NUL character in text, so NUL and its
//! replacement character are equal.

use sha2::{Digest, Sha256};

use super::{FinishedTask, FullDocument};
use crate::document::CharSpan;
use crate::store::{FileId, IngestState, WatchedFile};

/// Checksum of a record.
pub(super) type Checksum = [u8; 32];

/// Minimum cosine similarity after a vector was converted to another format and back.
const MIN_COSINE_SIMILARITY: f64 = 0.999;

impl FullDocument {
    /// Covers everything except the key. Of vectors, it covers their number and length.
    pub(super) fn checksum(&self) -> Checksum {
        let mut sum = ChecksumBuilder::default();
        let document = &self.document;
        sum.bytes(document.id.0.as_bytes());
        sum.text(document.base.as_str());
        sum.text(&document.filename);
        sum.optional_text(document.path.as_deref());
        sum.number(document.origin as i64);
        sum.optional_text(document.title.as_deref());
        sum.text(&document.format);
        sum.number(document.size_bytes.cast_signed());
        sum.bytes(&document.sha256);
        sum.number(document.date_added);
        sum.number(document.updated);
        sum.number(document.status as i64);
        sum.text(&document.method);
        sum.text(&self.metadata);
        sum.text(&document.model);
        sum.optional_text(document.warning.as_deref());
        sum.number(self.duplicates.len() as i64);
        self.duplicates.iter().for_each(|path| sum.text(path));
        sum.number(self.pages.len() as i64);
        for page in &self.pages {
            sum.number(page.number.into());
            sum.optional_text(page.label.as_deref());
            sum.text(&page.text);
        }
        sum.number(self.chunks.len() as i64);
        for whole in &self.chunks {
            let chunk = &whole.chunk;
            sum.bytes(whole.id.0.as_bytes());
            sum.text(&chunk.text);
            [chunk.pages.0, chunk.pages.1, chunk.tokens].into_iter().for_each(|number| sum.number(number.into()));
            sum.number(chunk.spans.len() as i64);
            for stretch in &chunk.spans {
                let CharSpan { page, start, end, in_chunk, windows } = *stretch;
                [page, start, end, windows].into_iter().for_each(|number| sum.number(number.into()));
                sum.number(in_chunk.map_or(-1, i64::from));
            }
            sum.number(chunk.headings.len() as i64);
            chunk.headings.iter().for_each(|heading| sum.text(heading));
            sum.number(chunk.vectors.len() as i64);
            chunk.vectors.iter().for_each(|vector| sum.number(vector.len() as i64));
        }
        sum.finish()
    }

    /// Whether each vector has the same direction as its counterpart. Both documents have the same number of vectors
    /// with the same lengths.
    pub(super) fn has_same_directions(&self, other: &FullDocument) -> bool {
        let vectors = |whole: &FullDocument| -> Vec<Vec<f32>> {
            whole.chunks.iter().flat_map(|whole| whole.chunk.vectors.iter().cloned()).collect()
        };
        vectors(self).iter().zip(&vectors(other)).all(|(one, other)| cosine(one, other) >= MIN_COSINE_SIMILARITY)
    }
}

impl FinishedTask {
    pub(super) fn checksum(&self) -> Checksum {
        let mut sum = ChecksumBuilder::default();
        sum.bytes(self.id.0.as_bytes());
        sum.text(self.base.as_str());
        sum.text(&self.owner);
        sum.number(self.kind as i64);
        sum.text(&self.request);
        sum.optional_text(self.document.map(|document| document.to_string()).as_deref());
        sum.optional_text(self.filename.as_deref());
        sum.optional_text(self.format.as_deref());
        sum.optional_number(self.size_bytes);
        sum.text(&self.state);
        sum.number(self.created);
        sum.optional_number(self.started);
        sum.optional_number(self.ended);
        sum.number(self.updated);
        sum.number(self.attempts.into());
        sum.optional_text(self.result.as_deref());
        sum.optional_text(self.error_code.as_deref());
        sum.optional_text(self.error_message.as_deref());
        sum.finish()
    }
}

/// Checksum of the stored state of a watched file.
pub(super) fn watched_file_checksum(watched: &WatchedFile) -> Checksum {
    let mut sum = ChecksumBuilder::default();
    sum.text(&watched.path);
    sum.optional_number(watched.stamp.modified);
    sum.number(watched.stamp.size.cast_signed());
    sum.number(watched.device.cast_signed());
    sum.number(watched.inode.cast_signed());
    sum.optional_number(watched.ctime);
    match watched.state {
        IngestState::Pending => sum.number(0),
        IngestState::InProgress(task) => sum.bytes(task.0.as_bytes()),
        IngestState::Done(document) => sum.optional_text(document.map(|document| document.to_string()).as_deref()),
    }
    sum.finish()
}

/// Checksum of a folder identity.
pub(super) fn folder_checksum(place: FileId) -> Checksum {
    let mut sum = ChecksumBuilder::default();
    sum.number(place.device.cast_signed());
    sum.number(place.inode.cast_signed());
    sum.finish()
}

/// Checksum of a sequence of checksums, as hex.
pub(super) fn combined_checksum<'a>(sums: impl Iterator<Item = &'a Checksum>) -> String {
    let mut all = Sha256::new();
    sums.for_each(|sum| all.update(sum));
    all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes each value with its type and length, so that different sequences never hash the same bytes.
#[derive(Default)]
struct ChecksumBuilder(Sha256);

impl ChecksumBuilder {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update([1]);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        match text.contains('\0') {
            true => self.bytes(text.replace('\0', "\u{fffd}").as_bytes()),
            false => self.bytes(text.as_bytes()),
        }
    }

    fn optional_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.0.update([0]),
        }
    }

    fn number(&mut self, number: i64) {
        self.0.update([2]);
        self.0.update(number.to_le_bytes());
    }

    fn optional_number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.number(number),
            None => self.0.update([0]),
        }
    }

    fn finish(self) -> Checksum {
        self.0.finalize().into()
    }
}

/// Two zero vectors count as equal.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    match (dot(a, a), dot(b, b)) {
        (0.0, 0.0) => 1.0,
        (one, other) if one > 0.0 && other > 0.0 => dot(a, b) / (one.sqrt() * other.sqrt()),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_compared_and_not_a_length() {
        assert!(cosine(&[1.0, 2.0], &[2.0, 4.0]) >= MIN_COSINE_SIMILARITY);
        assert!(cosine(&[1.0, 2.0], &[2.0, 1.0]) < MIN_COSINE_SIMILARITY);
        assert!(cosine(&[0.0, 0.0], &[0.0, 0.0]) >= MIN_COSINE_SIMILARITY);
        assert!(cosine(&[0.0, 0.0], &[0.0, 1.0]) < MIN_COSINE_SIMILARITY);
    }

    #[test]
    fn texts_that_are_cut_elsewhere_differ_and_a_zero_is_its_replacement() {
        let sum = |texts: &[&str]| {
            let mut sum = ChecksumBuilder::default();
            texts.iter().for_each(|text| sum.text(text));
            sum.finish()
        };
        assert_ne!(sum(&["ab", "c"]), sum(&["a", "bc"]));
        assert_eq!(sum(&["a\0b"]), sum(&["a\u{fffd}b"]));
    }
}

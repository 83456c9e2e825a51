//! Chunk context for retrieval: file name, title and headings, indexed together with the chunk's text.

/// Maximum length of file name and title in bytes, because each chunk repeats them.
const MAX_CONTEXT_BYTES: usize = 1024;

/// Context shared by all chunks of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentContext(String);

impl DocumentContext {
    pub(super) fn of(filename: &str, title: Option<&str>) -> DocumentContext {
        let mut named = [Some(filename), title].into_iter().flatten().collect::<Vec<_>>().join(" ");
        named.truncate(named.floor_char_boundary(MAX_CONTEXT_BYTES));
        DocumentContext(named)
    }

    /// Context of a chunk below these headings.
    pub(super) fn for_chunk(&self, path: &[String]) -> String {
        match path {
            [] => self.0.clone(),
            path => format!("{} {}", self.0, path.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_found_by_its_file_its_title_and_its_headings() {
        let named = DocumentContext::of("engine.pdf", Some("On the engine"));
        assert_eq!(named.for_chunk(&[]), "engine.pdf On the engine");
        assert_eq!(named.for_chunk(&["Notes".into(), "Note G".into()]), "engine.pdf On the engine Notes Note G");
        assert_eq!(DocumentContext::of("engine.pdf", None).for_chunk(&[]), "engine.pdf");
    }

    #[test]
    fn a_title_without_end_is_cut_between_two_characters() {
        let named = DocumentContext::of("a", Some(&"ä".repeat(MAX_CONTEXT_BYTES)));
        assert_eq!(named.for_chunk(&[]).len(), MAX_CONTEXT_BYTES);
    }
}

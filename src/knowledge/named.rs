//! Chunk context for retrieval: file name, title and headings, indexed together with the chunk's text.

/// Maximum length of file name and title in bytes, because each chunk repeats them.
const LONGEST: usize = 1024;

/// Context shared by all chunks of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named(String);

impl Named {
    pub(super) fn of(filename: &str, title: Option<&str>) -> Named {
        let mut named = [Some(filename), title].into_iter().flatten().collect::<Vec<_>>().join(" ");
        named.truncate(named.floor_char_boundary(LONGEST));
        Named(named)
    }

    /// Context of a chunk below these headings.
    pub(super) fn context(&self, path: &[String]) -> String {
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
        let named = Named::of("engine.pdf", Some("On the engine"));
        assert_eq!(named.context(&[]), "engine.pdf On the engine");
        assert_eq!(named.context(&["Notes".into(), "Note G".into()]), "engine.pdf On the engine Notes Note G");
        assert_eq!(Named::of("engine.pdf", None).context(&[]), "engine.pdf");
    }

    #[test]
    fn a_title_without_end_is_cut_between_two_characters() {
        let named = Named::of("a", Some(&"ä".repeat(LONGEST)));
        assert_eq!(named.context(&[]).len(), LONGEST);
    }
}

//! What the operator lets one caller use, beyond what trust says.

use std::sync::Arc;

/// Tools and collections a caller may use. Whoever has none may use all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    pub tools: Only,
    /// Named parts of a program's data, such as knowledge bases. Its tools ask; the library has no names of its own.
    pub collections: Only,
}

/// Everything, or what is on a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Only {
    #[default]
    All,
    /// Names; one that ends with `*` stands for all that begin so.
    These(Arc<[String]>),
}

impl Only {
    /// No names at all mean nothing, and not everything.
    pub fn these(names: impl IntoIterator<Item = impl Into<String>>) -> Only {
        Only::These(names.into_iter().map(Into::into).collect())
    }

    pub fn allows(&self, name: &str) -> bool {
        match self {
            Only::All => true,
            Only::These(names) => names.iter().any(|allowed| match allowed.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => allowed == name,
            }),
        }
    }

    pub fn is_all(&self) -> bool {
        matches!(self, Only::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_allows_what_it_names_and_nothing_else() {
        let only = Only::these(["classify_text", "knowledge-*"]);
        for name in ["classify_text", "knowledge-add", "knowledge-"] {
            assert!(only.allows(name), "{name}");
        }
        for name in ["classify", "classify_text2", "knowledge", "Classify_text", ""] {
            assert!(!only.allows(name), "{name}");
        }
        assert!(Only::All.allows("anything") && !Only::these([""; 0]).allows("anything"));
        assert!(Only::these(["*"]).allows("anything"));
    }
}

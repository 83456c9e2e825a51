//! Per-caller permissions: allow-lists of tools and collections, in addition to trust.

use std::sync::Arc;

/// Tools and collections a caller may use. The default permits all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    pub tools: AllowList,
    /// Named parts of a program's data, such as knowledge bases. The program's tools check them; the library defines
    /// none.
    pub collections: AllowList,
}

/// Everything, or an allow-list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AllowList {
    #[default]
    All,
    /// Names; a trailing `*` matches any suffix.
    Names(Arc<[String]>),
}

impl AllowList {
    /// An empty list permits nothing, not everything.
    pub fn names(names: impl IntoIterator<Item = impl Into<String>>) -> AllowList {
        AllowList::Names(names.into_iter().map(Into::into).collect())
    }

    pub fn allows(&self, name: &str) -> bool {
        match self {
            AllowList::All => true,
            AllowList::Names(names) => names.iter().any(|allowed| match allowed.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => allowed == name,
            }),
        }
    }

    pub fn is_all(&self) -> bool {
        matches!(self, AllowList::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_allows_what_it_names_and_nothing_else() {
        let only = AllowList::names(["classify_text", "knowledge-*"]);
        for name in ["classify_text", "knowledge-add", "knowledge-"] {
            assert!(only.allows(name), "{name}");
        }
        for name in ["classify", "classify_text2", "knowledge", "Classify_text", ""] {
            assert!(!only.allows(name), "{name}");
        }
        assert!(AllowList::All.allows("anything") && !AllowList::names([""; 0]).allows("anything"));
        assert!(AllowList::names(["*"]).allows("anything"));
    }
}

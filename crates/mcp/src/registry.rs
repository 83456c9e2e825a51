//! Tool registry: an immutable snapshot, replaced on every change.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, RegistrationError};
use crate::tool::Tool;

/// All tools, in order of registration (M-72).
#[derive(Debug, Default, Clone)]
pub struct Registry {
    tools: IndexMap<String, Arc<Tool>>,
    /// Names with `-` and `_` exchanged, where that is unambiguous.
    aliases: HashMap<String, Alias>,
    list_cache: ToolListCache,
}

/// Cached `tools/list` results. It is the largest response most clients get and rarely changes, so each variant is
/// serialized once.
#[derive(Debug, Default)]
struct ToolListCache {
    current: OnceLock<Arc<RawValue>>,
    without_output_schemas: OnceLock<Arc<RawValue>>,
}

/// A changed registry starts with an empty cache.
impl Clone for ToolListCache {
    fn clone(&self) -> ToolListCache {
        ToolListCache::default()
    }
}

#[derive(Debug, Clone)]
enum Alias {
    Unique(String),
    /// Two tools differ only in their separators, so neither gets the alias.
    Ambiguous,
}

/// The result of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationOutcome {
    Added,
    /// An identical tool is already registered (M-64).
    Unchanged,
}

impl Registry {
    /// This registry with one more tool.
    pub fn with(&self, tool: Tool) -> Result<(Registry, RegistrationOutcome), RegistrationError> {
        if let Some(existing) = self.tools.get(tool.name()) {
            return if existing.same_declaration(&tool) {
                Ok((self.clone(), RegistrationOutcome::Unchanged))
            } else {
                Err(RegistrationError::Conflict { name: tool.name().to_owned() })
            };
        }
        let mut next = self.clone();
        next.aliases
            .entry(normalize_separators(tool.name()))
            .and_modify(|alias| *alias = Alias::Ambiguous)
            .or_insert_with(|| Alias::Unique(tool.name().to_owned()));
        next.tools.insert(tool.name().to_owned(), Arc::new(tool));
        Ok((next, RegistrationOutcome::Added))
    }

    /// This registry without the tool; unchanged if it is not registered.
    pub fn without(&self, name: &str) -> Registry {
        let mut next = Registry::default();
        for tool in self.tools.values().filter(|tool| tool.name() != name) {
            next.aliases
                .entry(normalize_separators(tool.name()))
                .and_modify(|alias| *alias = Alias::Ambiguous)
                .or_insert_with(|| Alias::Unique(tool.name().to_owned()));
            next.tools.insert(tool.name().to_owned(), tool.clone());
        }
        next
    }

    /// Finds a tool by its name, or by its name with the other separator.
    pub fn find(&self, name: &str) -> Result<&Arc<Tool>, Error> {
        if let Some(tool) = self.tools.get(name) {
            return Ok(tool);
        }
        if let Some(Alias::Unique(canonical)) = self.aliases.get(&normalize_separators(name))
            && let Some(tool) = self.tools.get(canonical)
        {
            return Ok(tool);
        }
        Err(Error::ToolNotFound {
            name: crate::dispatch::truncate_owned(name),
            suggestion: closest_name(name, self.tools.keys()),
        })
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> + Clone {
        self.tools.values()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The array of all listings as JSON; omits `outputSchema` for clients before 2025-06-18, which do not support it.
    pub(crate) fn tools_json(&self, with_output_schemas: bool) -> &Arc<RawValue> {
        let cell = if with_output_schemas { &self.list_cache.current } else { &self.list_cache.without_output_schemas };
        cell.get_or_init(|| {
            let listings: Vec<Value> = self.iter().map(|tool| tool.listing_for(with_output_schemas)).collect();
            serde_json::value::to_raw_value(&listings).expect("listings are JSON values").into()
        })
    }

    /// `list_registered_tools()` (M-67).
    pub fn list_registered_tools(&self) -> Vec<Value> {
        self.iter().map(|tool| tool.listing()).collect()
    }

    /// `get_tool_schema(name)` (M-67).
    pub fn get_tool_schema(&self, name: &str) -> Result<Value, Error> {
        self.find(name).map(|tool| tool.input_schema().json().clone())
    }
}

/// The name closest to the typed one, if it is similar enough to suggest.
pub(crate) fn closest_name<'a>(typed: &str, names: impl Iterator<Item = &'a String>) -> Option<String> {
    // Long inputs are never typos of short names, and the comparison is quadratic.
    if typed.len() > 128 {
        return None;
    }
    names
        .filter(|name| *name != typed)
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|(score, _)| *score > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.clone())
}

fn normalize_separators(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, property: &str) -> Tool {
        let schema = json!({ "type": "object", "properties": { property: { "type": "string" } } });
        Tool::builder(name).input_schema(schema).run(async |_, _| "ok").expect("valid tool")
    }

    fn registry(names: &[&str]) -> Registry {
        names.iter().fold(Registry::default(), |registry, name| registry.with(tool(name, "a")).expect("added").0)
    }

    #[test]
    fn m64_registering_twice_is_registering_once() {
        let (again, what) = registry(&["one"]).with(tool("one", "a")).expect("idempotent");
        assert_eq!((again.len(), what), (1, RegistrationOutcome::Unchanged));
    }

    #[test]
    fn m64_x35_a_different_schema_is_refused_and_the_first_stays() {
        let first = registry(&["one"]);
        let error = first.with(tool("one", "b")).expect_err("conflict");
        assert_eq!(error, RegistrationError::Conflict { name: "one".into() });
        assert!(first.get_tool_schema("one").expect("still there")["properties"]["a"].is_object());
    }

    #[test]
    fn x15_the_other_separator_finds_the_tool_unless_two_would_answer() {
        let all = registry(&["knowledge-add", "classify_text", "a-b", "a_b"]);
        assert_eq!(all.find("knowledge_add").expect("alias").name(), "knowledge-add");
        assert_eq!(all.find("classify-text").expect("alias").name(), "classify_text");
        assert_eq!(all.find("a-b").expect("exact").name(), "a-b");
        assert_eq!(all.find("a_b").expect("exact").name(), "a_b");
    }

    #[test]
    fn m102_an_unknown_tool_suggests_the_near_match() {
        let error = registry(&["classify_text"]).find("clasify_text").expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "unknown tool `clasify_text`; did you mean `classify_text`? use `tools/list` to list available tools"
        );
    }

    #[test]
    fn m72_order_is_the_order_of_registration() {
        let names: Vec<_> = registry(&["z", "a", "m"]).iter().map(|tool| tool.name().to_owned()).collect();
        assert_eq!(names, ["z", "a", "m"]);
    }
}

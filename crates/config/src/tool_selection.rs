//! `server.tools`: the tools that `tools/list` contains.

use std::borrow::Cow;

use corbie_util::did_you_mean;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::diagnostic::KeyPath;
use super::external_classifier::SettingDiagnostic;

/// Names of profiles and tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSelection(Vec<String>);

/// The profile of all tools.
const ALL: &str = "all";

/// Names of the profiles.
pub const PROFILES: [&str; 4] = [ALL, "knowledge", "classify", "gateway"];

/// Every tool with its profile, if it is in one besides `all`. A test compares the names with the registered tools.
pub const TOOLS: [(&str, Option<&str>); 26] = [
    ("list_registered_tools", None),
    ("get_tool_schema", None),
    ("inspect_server", None),
    ("check_setup", None),
    ("list_categories", Some("classify")),
    ("classify_text", Some("classify")),
    ("batch_categorize", Some("classify")),
    ("get_taxonomy", Some("classify")),
    ("check_taxonomy", Some("classify")),
    ("save_taxonomy", Some("classify")),
    ("evaluate_categories", Some("classify")),
    ("chat_completion", Some("gateway")),
    ("explain_route", Some("gateway")),
    ("list_models", Some("gateway")),
    ("list_providers", Some("gateway")),
    ("knowledge-add", Some("knowledge")),
    ("knowledge-search", Some("knowledge")),
    ("knowledge-remove", Some("knowledge")),
    ("knowledge-show", Some("knowledge")),
    ("knowledge-clear", Some("knowledge")),
    ("knowledge-status", Some("knowledge")),
    ("knowledge-task-status", Some("knowledge")),
    ("knowledge-tasks", Some("knowledge")),
    ("knowledge-import", Some("knowledge")),
    ("knowledge-get", Some("knowledge")),
    ("knowledge-ask", Some("knowledge")),
];

impl ToolSelection {
    /// The listed tools; `None` for all.
    pub fn names(&self) -> Option<Vec<&'static str>> {
        if self.is_all() {
            return None;
        }
        let is_listed = |(name, profile): &(&str, Option<&str>)| {
            self.0.iter().any(|selected| selected == name || Some(selected.as_str()) == *profile)
        };
        Some(TOOLS.into_iter().filter(is_listed).map(|(name, _)| name).collect())
    }

    pub(super) fn is_all(&self) -> bool {
        self.0.iter().any(|selected| selected == ALL)
    }

    /// Names separated by commas.
    pub fn of_text(text: &str) -> ToolSelection {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        ToolSelection(names.map(str::to_owned).collect())
    }

    pub(super) fn diagnostics(&self) -> Vec<SettingDiagnostic> {
        let path = || KeyPath::dotted("server.tools");
        self.mistakes().into_iter().map(|message| SettingDiagnostic { path: path(), message }).collect()
    }

    /// Names that are neither a profile nor a tool.
    pub fn mistakes(&self) -> Vec<String> {
        let known = || PROFILES.into_iter().chain(TOOLS.into_iter().map(|(name, _)| name));
        let unknown = self.0.iter().filter(|selected| known().all(|name| name != selected.as_str()));
        let mistake = |selected: &String| {
            let hint = match did_you_mean::closest(selected, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`corbie tools list` shows the tools, and the profiles are `all`, `knowledge`, `classify` and \
                         `gateway`"
                    .to_owned(),
            };
            format!("has a name that is neither a profile nor a tool; {hint}")
        };
        let mut mistakes: Vec<_> = unknown.map(mistake).collect();
        if self.0.is_empty() {
            mistakes.push("is empty, so clients would see no tool; name a profile or tools".to_owned());
        }
        mistakes
    }
}

impl Default for ToolSelection {
    fn default() -> ToolSelection {
        ToolSelection(vec![ALL.into()])
    }
}

impl<'de> Deserialize<'de> for ToolSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolSelection, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        Ok(ToolSelection(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(text) => return Ok(ToolSelection::of_text(&text)),
            OneOrMany::Many(names) => names,
        }))
    }
}

impl Serialize for ToolSelection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [name] => name.serialize(serializer),
            names => names.serialize(serializer),
        }
    }
}

impl JsonSchema for ToolSelection {
    fn schema_name() -> Cow<'static, str> {
        "ToolSelection".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "array"], "items": {"type": "string"}, "examples": ["knowledge"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(json: serde_json::Value) -> ToolSelection {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn profiles_and_names_can_be_combined() {
        assert_eq!(ToolSelection::default().names(), None);
        assert_eq!(selection(serde_json::json!("gateway")).names().unwrap().len(), 4);
        let names = selection(serde_json::json!(["classify", "knowledge-search"])).names().unwrap();
        assert_eq!((names.len(), names.contains(&"knowledge-search")), (8, true));
        assert_eq!(selection(serde_json::json!(["knowledge", "all"])).names(), None);
    }

    #[test]
    fn unknown_names_are_mistakes_with_a_suggestion() {
        let messages = |json| selection(json).mistakes().join("\n");
        assert!(messages(serde_json::json!("knowlege")).ends_with("did you mean `knowledge`?"));
        assert!(messages(serde_json::json!(["knowledge_serch"])).ends_with("did you mean `knowledge-search`?"));
        assert!(messages(serde_json::json!(["xyz"])).contains("`corbie tools list`"));
        assert!(messages(serde_json::json!([])).contains("is empty"));
        assert_eq!(messages(serde_json::json!(["classify", "knowledge-search"])), "");
    }
}

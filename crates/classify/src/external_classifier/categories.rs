//! Categories of an external classification server. Pure.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Error;
use super::tool_result::ToolResult;

/// The categories of a server. The position of a name is its class index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Categories {
    /// Not empty, without duplicates.
    names: Vec<String>,
    prompts: HashMap<String, String>,
    descriptions: HashMap<String, String>,
}

const MAX_CATEGORIES: usize = 10_000;
const MAX_NAME_BYTES: usize = 1024;

impl Categories {
    pub(super) fn parse(mut answer: ToolResult) -> Result<Categories, Error> {
        let Some(Value::Array(listed)) = answer.remove("categories") else {
            return Err(Error::Invalid("`categories` is not a list".into()));
        };
        if listed.is_empty() || listed.len() > MAX_CATEGORIES {
            return Err(Error::Invalid(format!("got {} categories, the limit is 1 to {MAX_CATEGORIES}", listed.len())));
        }
        let mut seen = HashSet::new();
        for name in &listed {
            let name = name.as_str().filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES);
            let name =
                name.ok_or_else(|| Error::Invalid(format!("a category name must have 1 to {MAX_NAME_BYTES} bytes")))?;
            if !seen.insert(name) {
                return Err(Error::Invalid("duplicate category".into()));
            }
        }
        let texts = |value: Option<Value>| match value {
            Some(Value::Object(texts)) => texts
                .into_iter()
                .filter(|(name, _)| seen.contains(name.as_str()))
                .filter_map(|(name, text)| Some((name, text.as_str()?.to_owned())))
                .collect(),
            _ => HashMap::new(),
        };
        let prompts = texts(answer.remove("category_system_prompts"));
        let descriptions = texts(answer.remove("category_descriptions"));
        let names = listed.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Categories { names, prompts, descriptions })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The class index of a category.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// System prompt for prompts of this category, if the server provides one.
    pub fn system_prompt(&self, name: &str) -> Option<&str> {
        self.prompts.get(name).map(String::as_str).filter(|prompt| !prompt.is_empty())
    }

    pub fn description(&self, name: &str) -> Option<&str> {
        self.descriptions.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(answer: Value) -> Result<Categories, Error> {
        Categories::parse(answer.as_object().unwrap().clone())
    }

    #[test]
    fn c61_prompts_and_descriptions_belong_to_listed_categories() {
        let categories = read(json!({
            "categories": ["math", "general"],
            "category_system_prompts": {"math": "Show your steps.", "general": "", "ghost": "Boo."},
            "category_descriptions": {"math": "Numbers", "general": 7},
        }))
        .unwrap();
        assert_eq!(categories.names(), ["math", "general"]);
        assert_eq!(categories.index("general"), Some(1));
        assert_eq!(categories.system_prompt("math"), Some("Show your steps."));
        assert_eq!(categories.system_prompt("general"), None);
        assert_eq!(categories.system_prompt("ghost"), None);
        assert_eq!((categories.description("math"), categories.description("general")), (Some("Numbers"), None));
    }

    #[test]
    fn c61_a_list_that_breaks_the_rules_is_not_used() {
        let many: Vec<String> = (0..=MAX_CATEGORIES).map(|number| number.to_string()).collect();
        for categories in [
            json!(null),
            json!([]),
            json!("math"),
            json!([1]),
            json!([""]),
            json!(["math", "math"]),
            json!(["x".repeat(MAX_NAME_BYTES + 1)]),
            json!(many),
        ] {
            assert!(matches!(read(json!({"categories": categories})), Err(Error::Invalid(_))));
        }
    }
}

//! Tool `list_categories`: the available categories (C-01 to C-09).

use corbie_mcp::{CallResult, RegistrationError, Tool};
use serde_json::json;

use super::render_error;
use crate::Classification;

// No text here contains the stem of "classify" except `classify_text`: clients scan for it (Z-5).
const DESCRIPTION: &str = "List the categories that texts can be assigned to, in index order, with the description and \
system prompt of each.";

pub(super) fn tool(classification: Classification) -> Result<Tool, RegistrationError> {
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    Tool::builder("list_categories")
        .title("List categories")
        .description(DESCRIPTION)
        .module("corbie::categories")
        .no_input()
        .output_schema(json!({
            "type": "object",
            "properties": {
                "categories": { "type": "array", "items": { "type": "string" } },
                "category_system_prompts": map,
                "category_descriptions": map,
            },
            "required": ["categories"],
        }))
        .dialect(render_error)
        .run(move |_, _| {
            let listing = classification.snapshot().listing.clone();
            std::future::ready(CallResult::json((*listing).clone()))
        })
}

//! `list_models`: the models of all providers (P-19).

use corbie_mcp::{CallResult, RegistrationError, Tool};
use serde_json::json;

use crate::methods::models_list;
use crate::router::Router;

const DESCRIPTION: &str = "List the available language models of all providers, with provider, status, context window, \
capabilities and price of each.";

pub(super) fn tool(router: Router) -> Result<Tool, RegistrationError> {
    let entries = json!({ "type": "array", "items": { "type": "object" } });
    Tool::builder("list_models")
        .title("List models")
        .description(DESCRIPTION)
        .module("corbie::route")
        .no_input()
        .output_schema(json!({
            "type": "object",
            "properties": { "models": entries, "failed": entries },
            "required": ["models"],
        }))
        .run(move |_, _| {
            let router = router.clone();
            async move { CallResult::json(models_list::list(&router).await) }
        })
}

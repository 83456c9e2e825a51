//! `list_models`: the models of all providers (P-19).

use corbie_mcp::{CallResult, RegistrationError, Tool};
use serde_json::json;

use crate::methods::models_list;
use crate::router::Router;

const DESCRIPTION: &str = "Lists the models of all configured providers, with what is known of each: whose it is, \
whether that provider is up, how much it reads, what it can do and what it costs.";

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

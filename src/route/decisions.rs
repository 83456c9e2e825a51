//! What became of the last prompts, as resources.

use corbie_mcp::{Error, RegistrationError, Resource, ResourceContents, ResourceTemplate, Variables};
use serde_json::json;

use super::router::Router;

/// The newest decisions, newest first.
const DECISIONS: &str = "corbie://decisions";
/// How many of them one reading shows.
const SHOWN: usize = 100;

pub(super) fn newest(router: Router) -> Resource {
    let read = move |_| {
        let text = json!({ "decisions": router.records().newest(SHOWN) }).to_string();
        std::future::ready(Ok(vec![ResourceContents::text(DECISIONS, "application/json", text)]))
    };
    Resource::new(DECISIONS, "decisions", read)
        .description("How the last prompts were routed: category, rule, who was asked, time, tokens and cost")
        .mime_type("application/json")
}

pub(super) fn one(router: Router) -> Result<ResourceTemplate, RegistrationError> {
    let read = move |_, uri: String, variables: Variables| {
        let id = variables.get("id").and_then(|id| id.parse().ok());
        let found = id.and_then(|id| router.records().get(id)).map(|record| {
            let text = serde_json::to_string(&record).expect("a record has string keys");
            vec![ResourceContents::text(uri.clone(), "application/json", text)]
        });
        std::future::ready(found.ok_or(Error::ResourceNotFound { uri }))
    };
    let template = ResourceTemplate::new(format!("{DECISIONS}/{{id}}"), "decision", read)?;
    Ok(template.description("How one prompt was routed").mime_type("application/json"))
}

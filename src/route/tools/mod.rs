//! The router as tools, methods and resources of the server, one file each.

mod chat_completion;
mod explain_route;
mod list_models;
mod list_providers;

use corbie_mcp::{Error, Resource, ResourceContents, ResourceTemplate, ServerBuilder};
use serde_json::json;

pub use explain_route::{Candidate, Explained, Probability};
pub use list_providers::Listed;

use super::methods;
use super::router::Router;

/// The newest decisions, newest first.
pub const DECISIONS: &str = "corbie://decisions";
/// How many of them one reading shows.
const SHOWN: usize = 100;

/// Adds everything the router has to a server.
pub fn register(builder: ServerBuilder, router: &Router) -> ServerBuilder {
    methods::register(builder, router)
        .tool(chat_completion::tool(router.clone()))
        .tool(list_models::tool(router.clone()))
        .tool(list_providers::tool(router.clone()))
        .tool(explain_route::tool(router.clone()))
        .resource(decisions(router.clone()))
        .resource_template(decision(router.clone()))
}

fn decisions(router: Router) -> Resource {
    let read = move |_| {
        let text = json!({ "decisions": router.records().newest(SHOWN) }).to_string();
        std::future::ready(Ok(vec![ResourceContents::text(DECISIONS, "application/json", text)]))
    };
    Resource::new(DECISIONS, "decisions", read)
        .description("How the last prompts were routed: category, rule, who was asked, time, tokens and cost")
        .mime_type("application/json")
}

fn decision(router: Router) -> Result<ResourceTemplate, corbie_mcp::RegistrationError> {
    let read = move |_, uri: String, variables: corbie_mcp::Variables| {
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

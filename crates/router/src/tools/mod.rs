//! MCP tools of the router, one file each, and the registration of everything the router adds to a server.

mod chat_completion;
mod explain_route;
mod list_models;
mod list_providers;

use corbie_mcp::ServerBuilder;

pub use explain_route::{CandidateOutput, DocumentsOutput, Probability, RouteExplanation};
pub use list_providers::ProviderOutput;

use super::router::Router;
use super::{decision_resources, methods};

/// Registers the router's methods, tools and resources.
pub fn register(builder: ServerBuilder, router: &Router) -> ServerBuilder {
    methods::register(builder, router)
        .tool(chat_completion::tool(router.clone()))
        .tool(list_models::tool(router.clone()))
        .tool(list_providers::tool(router.clone()))
        .tool(explain_route::tool(router.clone()))
        .resource(decision_resources::newest(router.clone()))
        .resource_template(decision_resources::one(router.clone()))
}

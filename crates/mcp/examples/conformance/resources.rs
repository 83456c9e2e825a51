//! Resources: text, image, template, and a subscribable one.

use corbie_mcp::{Context, Error, Resource, ResourceContents, ResourceTemplate, ServerBuilder, Variables};
use serde_json::json;

use crate::PNG;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    let text = "This is the content of the static text resource.";
    server
        .resource(
            Resource::text("test://static-text", "static-text", "text/plain", text)
                .description("A text that never changes."),
        )
        .resource(
            Resource::new("test://static-binary", "static-binary", static_binary)
                .mime_type("image/png")
                .description("A picture that never changes."),
        )
        .resource(
            Resource::text("test://watched-resource", "watched-resource", "text/plain", "Watched resource content")
                .description("A text that can be subscribed to."),
        )
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "template", template_data)
                .map(|template| template.mime_type("application/json").description("The data of any id.")),
        )
}

async fn static_binary(_: Context) -> Result<Vec<ResourceContents>, Error> {
    Ok(vec![ResourceContents::blob("test://static-binary", "image/png", PNG)])
}

async fn template_data(_: Context, uri: String, variables: Variables) -> Result<Vec<ResourceContents>, Error> {
    let id = &variables["id"];
    let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    Ok(vec![ResourceContents::text(uri, "application/json", data.to_string())])
}

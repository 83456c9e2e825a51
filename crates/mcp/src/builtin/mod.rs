//! Built-in introspection tools (M-67, M-69, M-73).

mod inspect_server;

use serde_json::{Value, json};

use crate::builder::ServerBuilder;
use crate::content::ResourceContents;
use crate::context::Context;
use crate::error::{Error, RegistrationError};
use crate::outcome::{CallResult, ToolError};
use crate::resource::Resource;
use crate::server::Server;
use crate::tool::{Arguments, Tool};

/// URI of the resource with the counts and latencies of every tool.
pub const METRICS_URI: &str = "corbie://metrics/tools";

impl ServerBuilder {
    /// Adds `list_registered_tools`, `get_tool_schema`, `inspect_server` and the metrics resource.
    pub fn builtins(self) -> ServerBuilder {
        self.tool(list_registered_tools()).tool(get_tool_schema()).tool(inspect_server::tool()).resource(metrics())
    }
}

fn list_registered_tools() -> Result<Tool, RegistrationError> {
    Tool::builder("list_registered_tools")
        .title("List tools")
        .description("List all tools of this server with their descriptions, schemas and metadata. Use it to find out \
            what the server can do.")
        .module(module_path!())
        .input_schema(json!({
            "type": "object",
            "properties": {
                "refresh": { "type": "boolean", "default": false, "description": "Whether to refresh the list of tools \
                    first, ignoring the cache" },
            },
        }))
        .output_schema(json!({
            "type": "object",
            "properties": { "tools": { "type": "array", "items": { "type": "object" } }, "count": { "type": "integer" } },
            "required": ["tools", "count"],
        }))
        .run(async |context: Context, arguments: Arguments| {
            let force = arguments.value()["refresh"].as_bool().unwrap_or_default();
            context.server().discover(force);
            let (registry, caller) = (context.server().registry(), context.caller());
            let tools: Vec<Value> =
                registry.iter().filter(|tool| caller.may_use(tool.name())).map(|tool| tool.listing()).collect();
            CallResult::json(json!({ "count": tools.len(), "tools": tools }))
        })
}

fn get_tool_schema() -> Result<Tool, RegistrationError> {
    Tool::builder("get_tool_schema")
        .title("Get a tool's schema")
        .description("Get the JSON Schema of a tool's input parameters. Use it before calling an unfamiliar tool.")
        .module(module_path!())
        .input_schema(json!({
            "type": "object",
            "properties": { "name": { "type": "string", "minLength": 1, "description": "Name of the tool, from list_registered_tools" } },
            "required": ["name"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": { "name": { "type": "string" }, "inputSchema": { "type": "object" } },
            "required": ["name", "inputSchema"],
        }))
        .run(async |context: Context, arguments: Arguments| -> Result<CallResult, ToolError> {
            let name = arguments.value()["name"].as_str().unwrap_or_default();
            let registry = context.server().registry();
            match registry.find(name) {
                Ok(tool) if !context.caller().may_use(tool.name()) => {
                    let error = Error::NotGranted { what: format!("`{}`", tool.name()) };
                    Err(ToolError::new(error.error_type(), error.to_string()))
                }
                Ok(tool) => Ok(CallResult::json(json!({ "name": tool.name(), "inputSchema": tool.input_schema().json() }))),
                Err(error) => Err(ToolError::new(error.error_type(), error.to_string())),
            }
        })
}

fn metrics() -> Resource {
    Resource::new(METRICS_URI, "tool-metrics", async |context: Context| {
        let text = json!({ "tools": tool_stats(context.server()) }).to_string();
        Ok(vec![ResourceContents::text(METRICS_URI, "application/json", text)])
    })
    .title("Tool metrics")
    .description("Calls, errors by kind and latencies of every tool since the server started")
    .mime_type("application/json")
}

fn tool_stats(server: &Server) -> serde_json::Map<String, Value> {
    server.registry().iter().map(|tool| (tool.name().to_owned(), tool.stats().summary())).collect()
}

//! Tools without client requests: all content kinds, progress, log messages, change notifications.

use std::time::Duration;

use corbie_mcp::{
    Arguments, CallResult, ClientFeature, ContentBlock, Context, Error, Event, LogLevel, RegistrationError,
    ResourceContents, ServerBuilder, Tool, mcp_tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use crate::PNG;

/// A short silence as WAV, in base64.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Pause between two notifications, so that a client sees them arrive separately.
const NOTIFICATION_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(simple_text_tool())
        .tool(image_content_tool())
        .tool(audio_content_tool())
        .tool(embedded_resource_tool())
        .tool(multiple_content_types_tool())
        .tool(error_handling_tool())
        .tool(tool_with_progress_tool())
        .tool(tool_with_logging_tool())
        .tool(logging_tool_tool())
        .tool(streaming_elicitation_tool())
        .tool(reconnection_tool())
        .tool(missing_capability_tool())
        .tool(trigger_tool_change_tool())
        .tool(trigger_prompt_change_tool())
        .tool(custom_header_tool())
        .tool(json_schema_2020_12_tool())
}

// === content ===

/// Answers with a text.
#[mcp_tool(name = "test_simple_text")]
fn simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Answers with a picture.
#[mcp_tool(name = "test_image_content")]
fn image_content() -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}

/// Answers with a sound.
#[mcp_tool(name = "test_audio_content")]
fn audio_content() -> ContentBlock {
    ContentBlock::audio(WAV, "audio/wav")
}

/// Answers with a resource, whole.
#[mcp_tool(name = "test_embedded_resource")]
fn embedded_resource() -> ContentBlock {
    let text = "This is an embedded resource content.";
    ContentBlock::resource(ResourceContents::text("test://embedded-resource", "text/plain", text))
}

/// Answers with a text, a picture and a resource.
#[mcp_tool(name = "test_multiple_content_types")]
fn multiple_content_types() -> Vec<ContentBlock> {
    let data = json!({ "test": "data", "value": 123 }).to_string();
    vec![
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::image(PNG, "image/png"),
        ContentBlock::resource(ResourceContents::text("test://mixed-content-resource", "application/json", data)),
    ]
}

/// Always fails, in the way a model is meant to read.
#[mcp_tool(name = "test_error_handling")]
fn error_handling() -> CallResult {
    CallResult::error("This tool intentionally returns an error for testing")
}

// === notifications during the call ===

/// Reports progress three times.
#[mcp_tool(name = "test_tool_with_progress")]
async fn tool_with_progress(context: &Context) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        context.progress(done, Some(100.0), None);
        sleep(NOTIFICATION_INTERVAL).await;
    }
    "Tool with progress executed successfully"
}

/// Logs three messages to the client.
#[mcp_tool(name = "test_tool_with_logging")]
async fn tool_with_logging(context: &Context) -> &'static str {
    context.log(LogLevel::Info, None, "Tool execution started");
    sleep(NOTIFICATION_INTERVAL).await;
    context.log(LogLevel::Info, None, "Tool processing data");
    sleep(NOTIFICATION_INTERVAL).await;
    context.log(LogLevel::Info, None, "Tool execution completed");
    "Tool with logging executed successfully"
}

/// Logs one message, which only reaches clients that have requested log messages.
#[mcp_tool(name = "test_logging_tool")]
fn logging_tool(context: &Context) -> &'static str {
    context.log(LogLevel::Info, None, "Logging evaluated");
    "Logging evaluated"
}

/// Streams progress and then its result; the stream never carries a request.
#[mcp_tool(name = "test_streaming_elicitation")]
fn streaming_elicitation(context: &Context) -> &'static str {
    context.progress(1.0, Some(1.0), None);
    "Streaming complete"
}

/// Takes a while, during which a client may lose its connection.
#[mcp_tool(name = "test_reconnection")]
async fn reconnection() -> &'static str {
    sleep(2 * NOTIFICATION_INTERVAL).await;
    "Reconnection test completed successfully. If you received this, the client properly reconnected after stream closure."
}

// === client and server state ===

/// Works only for clients that support sampling.
#[mcp_tool(name = "test_missing_capability")]
fn missing_capability(context: &Context) -> Result<&'static str, Error> {
    context.client().require(ClientFeature::Sampling)?;
    Ok("Success")
}

/// Notifies all subscribers that the list of tools has changed.
#[mcp_tool(name = "test_trigger_tool_change", effect = changes)]
fn trigger_tool_change(context: &Context) -> &'static str {
    context.server().publish(Event::ToolsChanged);
    "Mutation triggered"
}

/// Notifies all subscribers that the list of prompts has changed.
#[mcp_tool(name = "test_trigger_prompt_change", effect = changes)]
fn trigger_prompt_change(context: &Context) -> &'static str {
    context.server().publish(Event::PromptsChanged);
    "Mutation triggered"
}

// === schemas ===

#[derive(Deserialize, JsonSchema)]
struct RegionArguments {
    /// HTTP clients repeat it as `Mcp-Param-Region`, where gateways can see it
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// Has a parameter that is mirrored in an HTTP header.
#[mcp_tool(name = "test_custom_header")]
fn custom_header(#[args] place: RegionArguments) -> String {
    format!("Region: {}", place.region)
}

/// A hand-written schema that no Rust type expresses. It must reach the client unchanged.
fn json_schema_2020_12_tool() -> Result<Tool, RegistrationError> {
    Tool::builder("json_schema_2020_12_tool")
        .description("Has a schema with the vocabulary of JSON Schema 2020-12.")
        .input_schema(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
                },
            },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        }))
        .run(async |_, arguments: Arguments| arguments.value().to_string())
}

//! Tools that send requests to the client: elicitation, sampling and roots.
//!
//! Each tool is written once. Clients of 2025 receive the requests and answer them while the tool waits; clients of
//! 2026 receive them as the result of the call and repeat the call with the answers. Requests that are awaited together
//! are sent together.

use corbie_mcp::{
    ClientRequest, ClientRequestError, ContentBlock, Context, CreateMessageResult, ElicitAction, ElicitResult, Role,
    ServerBuilder, mcp_tool,
};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(sampling_tool())
        .tool(elicitation_tool())
        .tool(elicitation_defaults_tool())
        .tool(elicitation_enums_tool())
        .tool(round_of_elicitation_tool())
        .tool(round_of_sampling_tool())
        .tool(round_of_roots_tool())
        .tool(round_with_state_tool())
        .tool(round_with_sealed_state_tool())
        .tool(round_of_many_tool())
        .tool(several_rounds_tool())
        .tool(round_within_capabilities_tool())
}

// === forms and answers ===

/// A form with one required field.
pub(crate) fn form(field: &str, kind: &str) -> Value {
    json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] })
}

/// A text field of an accepted form; empty if the user declined.
pub(crate) fn text(answer: &ElicitResult, field: &str) -> String {
    let text = answer.content.as_ref().and_then(|content| content[field].as_str());
    text.unwrap_or_default().to_owned()
}

fn describe(answer: &ElicitResult) -> String {
    let action = match answer.action {
        ElicitAction::Accept => "accept",
        ElicitAction::Decline => "decline",
        ElicitAction::Cancel => "cancel",
    };
    format!("action={action}, content={}", answer.content.clone().unwrap_or_default())
}

fn sampled_text(answer: &CreateMessageResult) -> &str {
    answer.content["text"].as_str().unwrap_or_default()
}

// === one request ===

/// Has the client's model answer a prompt.
#[mcp_tool(name = "test_sampling")]
async fn sampling(
    context: &Context,
    /** The prompt to send to the LLM */
    prompt: String,
) -> Result<String, ClientRequestError> {
    let answer = context.sample("answer", prompt, 100).await?;
    Ok(format!("LLM response: {}", sampled_text(&answer)))
}

/// Elicits a name and an address.
#[mcp_tool(name = "test_elicitation")]
async fn elicitation(
    context: &Context,
    /// The message to show the user
    message: String,
) -> Result<String, ClientRequestError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    let answer = context.elicit("user", message, schema).await?;
    Ok(format!("User response: {}", describe(&answer)))
}

/// Elicits with a prefilled form (SEP-1034).
#[mcp_tool(name = "test_elicitation_sep1034_defaults")]
async fn elicitation_defaults(context: &Context) -> Result<String, ClientRequestError> {
    let statuses = ["active", "inactive", "pending"];
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": { "type": "string", "description": "User status", "enum": statuses, "default": "active" },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
        "required": [],
    });
    let answer = context.elicit("form", "Please review and update the form fields with defaults", schema).await?;
    Ok(format!("Elicitation completed: {}", describe(&answer)))
}

/// Elicits with every form of choice (SEP-1330).
#[mcp_tool(name = "test_elicitation_sep1330_enums")]
async fn elicitation_enums(context: &Context) -> Result<String, ClientRequestError> {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |noun: &str| {
        json!([
            { "const": "value1", "title": format!("First {noun}") },
            { "const": "value2", "title": format!("Second {noun}") },
            { "const": "value3", "title": format!("Third {noun}") },
        ])
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "description": "Select one option", "enum": options },
            "titledSingle": {
                "type": "string",
                "description": "Select one option with titles",
                "oneOf": titled("Option"),
            },
            "legacyEnum": {
                "type": "string",
                "description": "Select one option (legacy)",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "description": "Select multiple options",
                "minItems": 1,
                "maxItems": 3,
                "items": { "type": "string", "enum": options },
            },
            "titledMulti": {
                "type": "array",
                "description": "Select multiple options with titles",
                "minItems": 1,
                "maxItems": 3,
                "items": { "anyOf": titled("Choice") },
            },
        },
        "required": [],
    });
    let answer = context.elicit("form", "Please select options from the enum fields", schema).await?;
    Ok(format!("Elicitation completed: {}", describe(&answer)))
}

/// Elicits a name and greets.
#[mcp_tool(name = "test_input_required_result_elicitation")]
async fn round_of_elicitation(context: &Context) -> Result<String, ClientRequestError> {
    let answer = context.elicit("user_name", "What is your name?", form("name", "string")).await?;
    Ok(format!("Hello, {}!", text(&answer, "name")))
}

/// Samples a capital from the client's model.
#[mcp_tool(name = "test_input_required_result_sampling")]
async fn round_of_sampling(context: &Context) -> Result<String, ClientRequestError> {
    let answer = context.sample("capital_question", "What is the capital of France?", 100).await?;
    Ok(sampled_text(&answer).to_owned())
}

/// Requests the roots of the client.
#[mcp_tool(name = "test_input_required_result_list_roots")]
async fn round_of_roots(context: &Context) -> Result<String, ClientRequestError> {
    let roots = context.roots("client_roots").await?;
    let uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(format!("Roots: {}", uris.join(", ")))
}

// === state between rounds ===

/// Elicits a confirmation; the request state travels with the request.
#[mcp_tool(name = "test_input_required_result_request_state")]
async fn round_with_state(context: &Context) -> Result<&'static str, ClientRequestError> {
    context.elicit("confirm", "Please confirm", form("ok", "boolean")).await?;
    Ok("state-ok")
}

/// Elicits a confirmation; a client that alters the request state is refused.
#[mcp_tool(name = "test_input_required_result_tampered_state")]
async fn round_with_sealed_state(context: &Context) -> Result<&'static str, ClientRequestError> {
    context.elicit("confirm", "Please confirm", form("ok", "boolean")).await?;
    Ok("integrity-ok")
}

/// Requests elicitation, sampling and roots in one round.
#[mcp_tool(name = "test_input_required_result_multiple_inputs")]
async fn round_of_many(context: &Context) -> Result<String, ClientRequestError> {
    let (name, greeting, roots) = tokio::try_join!(
        context.elicit("user_name", "What is your name?", form("name", "string")),
        context.sample("greeting", "Generate a greeting", 50),
        context.roots("client_roots"),
    )?;
    Ok(format!("{} {} ({} roots)", sampled_text(&greeting), text(&name, "name"), roots.len()))
}

/// Elicits twice; the first answer is kept until the second arrives.
#[mcp_tool(name = "test_input_required_result_multi_round")]
async fn several_rounds(context: &Context) -> Result<String, ClientRequestError> {
    let name = context.elicit("step1", "Step 1: What is your name?", form("name", "string")).await?;
    let color = context.elicit("step2", "Step 2: What is your favorite color?", form("color", "string")).await?;
    Ok(format!("{} likes {}", text(&name, "name"), text(&color, "color")))
}

/// Sends only requests that the client's capabilities include.
#[mcp_tool(name = "test_input_required_result_capabilities")]
async fn round_within_capabilities(context: &Context) -> Result<String, ClientRequestError> {
    let questions = [
        ("elicit_input", ClientRequest::elicit_form("Elicitation input", form("value", "string"))),
        ("sample_input", ClientRequest::sample(vec![(Role::User, ContentBlock::text("Sample request"))], 50)),
    ];
    let understood = questions.into_iter().filter(|(_, question)| context.client().supports_request(question));
    let answers = try_join_all(understood.map(|(key, question)| context.request_client(key, question))).await?;
    Ok(format!("{} answers", answers.len()))
}

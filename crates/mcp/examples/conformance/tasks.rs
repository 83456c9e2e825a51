//! Tools that may outlive their call (extension `io.modelcontextprotocol/tasks`).
//!
//! A client with task support gets a handle immediately and polls for the result. The tool code is the same in both
//! cases, including requests to the client.

use std::time::Duration;

use corbie_mcp::{
    Arguments, ClientRequestError, Context, Error, RegistrationError, ServerBuilder, TaskSupport, Tool, ToolError,
    ToolOutcome, mcp_tool,
};
use serde_json::json;
use tokio::time::sleep;

use crate::client_requests::{form, text};

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(greet_tool())
        .tool(slow_compute_tool())
        .tool(failing_job_tool())
        .tool(protocol_error_job_tool())
        .tool(confirm_delete_tool())
        .tool(multi_input_tool())
        .tool(tool_with_task_tool())
}

/// Greets immediately; never a task.
#[mcp_tool(name = "greet")]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Runs for the requested time.
#[mcp_tool(name = "slow_compute", task = optional)]
async fn slow_compute(#[arg(default)] seconds: u64, #[arg(default = "Computation")] label: String) -> String {
    sleep(Duration::from_secs(seconds)).await;
    format!("{label} done after {seconds} s")
}

/// Fails as a tool does: the task completes, and its result contains the error.
#[mcp_tool(name = "failing_job", task = always)]
async fn failing_job() -> Result<(), ToolError> {
    sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("JobFailed", "This job intentionally fails for testing"))
}

/// Fails as a server does: the task itself fails.
#[mcp_tool(name = "protocol_error_job", task = optional)]
async fn protocol_error_job() -> Result<(), Error> {
    Err(Error::internal("this job intentionally breaks for testing", "called by the conformance suite"))
}

/// Elicits a confirmation before it deletes. (It deletes nothing.)
#[mcp_tool(name = "confirm_delete", task = optional)]
async fn confirm_delete(context: &Context, filename: String) -> Result<String, ClientRequestError> {
    let answer = context.elicit("confirm", format!("Delete {filename}?"), form("confirm", "boolean")).await?;
    let confirmed = answer.content.is_some_and(|content| content["confirm"] == true);
    Ok(format!("{} {filename}", if confirmed { "Deleted" } else { "Kept" }))
}

/// Waits for two answers, which may come one at a time.
#[mcp_tool(name = "multi_input", task = optional)]
async fn multi_input(context: &Context) -> Result<String, ClientRequestError> {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "confirm": { "type": "boolean" } },
        "required": ["name", "confirm"],
    });
    let (first, second) = tokio::try_join!(
        context.elicit("first", "Who comes first?", schema.clone()),
        context.elicit("second", "Who comes second?", schema),
    )?;
    Ok(format!("{}, then {}", text(&first, "name"), text(&second, "name")))
}

/// Elicits input while the client still waits, and runs only the rest as a task.
fn tool_with_task_tool() -> Result<Tool, RegistrationError> {
    Tool::builder("test_tool_with_task")
        .description("Asks for a name, then greets in the background.")
        .no_input()
        .task_support(TaskSupport::Handoff)
        .run(tool_with_task)
}

async fn tool_with_task(context: Context, _: Arguments) -> Result<ToolOutcome, ClientRequestError> {
    let answer = context.elicit("user_name", "What is your name?", form("name", "string")).await?;
    let name = text(&answer, "name");
    Ok(ToolOutcome::background(async move |_| {
        sleep(Duration::from_millis(100)).await;
        format!("Hello, {name}!")
    }))
}

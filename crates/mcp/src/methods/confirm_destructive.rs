//! Confirmation of destructive calls of verified callers by the user at the client (`trust.confirm_destructive`).
//!
//! The operator has to enable it, because it relies on the client to show the form to the user and not to answer
//! automatically.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::client::ClientFeature;
use crate::context::Context;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::outcome::{ToolError, ToolOutcome};
use crate::tool::{Arguments, Tool};
use crate::trust::{Effect, TrustLevel};

/// Key of this client request within a call; tools do not use this prefix.
const CONFIRMATION_KEY: &str = "corbie/confirm_destructive";

#[derive(Deserialize)]
struct Confirmation {
    allow: bool,
}

/// Whether a call denied by trust can be confirmed by the user.
pub(super) fn can_confirm(tool: &Tool, call: &MethodCall) -> bool {
    let caller = &call.transport.caller;
    call.server.confirms_destructive()
        && tool.meta().effect == Effect::Destroys
        && caller.trust == TrustLevel::Verified
        && caller.may_use(tool.name())
        && call.client.supports(ClientFeature::Elicitation)
}

/// Runs a tool; a call denied by trust needs confirmation first.
pub(super) fn run(
    tool: &Tool,
    denied: Option<Error>,
    context: Context,
    arguments: Arguments,
) -> BoxFuture<'static, ToolOutcome> {
    let Some(denied) = denied else { return (tool.run)(context, arguments) };
    let (run, name) = (tool.run.clone(), tool.name().to_owned());
    Box::pin(async move {
        match confirm(&name, &context, &arguments).await {
            Some(true) => run(context, arguments).await,
            Some(false) => ToolOutcome::Failed(ToolError::Protocol(Error::NotAllowed { tool: name })),
            None => ToolOutcome::Failed(ToolError::Protocol(denied)),
        }
    })
}

/// Anything except an explicit yes is a no; `None` if the client could not show the form.
async fn confirm(tool: &str, context: &Context, arguments: &Arguments) -> Option<bool> {
    let (caller, sent) = (&context.caller().identity, sanitize_arguments(&arguments.value().to_string()));
    let question = format!("`{caller}` requests to run the destructive tool `{tool}` with {sent}. Allow?");
    let schema = json!({
        "type": "object",
        "properties": { "allow": { "type": "boolean", "title": "Allow once", "default": false } },
        "required": ["allow"],
    });
    match context.elicit(CONFIRMATION_KEY, question, schema).await {
        Ok(answer) => Some(answer.accepted().is_some_and(|Confirmation { allow }| allow)),
        Err(error) => {
            tracing::warn!(tool, %error, "cannot request confirmation of a destructive call");
            None
        }
    }
}

/// Arguments for display: truncated, without control characters and characters that affect text direction.
fn sanitize_arguments(arguments: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 2000;
    let plain = |letter: &char| {
        !letter.is_control()
            && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown: String = arguments.chars().filter(plain).take(MAX_SHOWN_CHARS).collect();
    if arguments.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

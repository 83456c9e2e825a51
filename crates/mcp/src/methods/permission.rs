//! A verified caller's destructive call, put to the person at the client instead of being refused (`trust.ask_person`).
//!
//! The client is trusted to ask the person, and not to answer for them; that is why the operator has to switch it on.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::client::ClientFeature;
use crate::context::Context;
use crate::dispatch::Call;
use crate::error::Error;
use crate::outcome::{Outcome, ToolError};
use crate::tool::{Arguments, Tool};
use crate::trust::{Effect, TrustLevel};

/// The name of the question among those of a call; no tool's own begins like this.
const KEY: &str = "corbie/permission";

#[derive(Deserialize)]
struct Permission {
    allow: bool,
}

/// Whether a call that trust refuses may be put to a person.
pub(super) fn can_be_asked_for(tool: &Tool, call: &Call) -> bool {
    let caller = &call.exchange.caller;
    call.server.asks_person()
        && tool.meta().effect == Effect::Destroys
        && caller.trust == TrustLevel::Verified
        && caller.may_use(tool.name())
        && call.client.supports(ClientFeature::Elicitation)
}

/// Runs a tool; first, if trust would refuse it, with the consent of the person.
pub(super) fn run(
    tool: &Tool,
    denied: Option<Error>,
    context: Context,
    arguments: Arguments,
) -> BoxFuture<'static, Outcome> {
    let Some(denied) = denied else { return (tool.run)(context, arguments) };
    let (run, name) = (tool.run.clone(), tool.name().to_owned());
    Box::pin(async move {
        match is_allowed(&name, &context, &arguments).await {
            true => run(context, arguments).await,
            false => Outcome::Failed(ToolError::Protocol(denied)),
        }
    })
}

/// Whatever is not a clear yes is a no.
async fn is_allowed(tool: &str, context: &Context, arguments: &Arguments) -> bool {
    let (caller, sent) = (&context.caller().identity, shown(&arguments.value().to_string()));
    let question = format!("`{caller}` wants to run `{tool}`, which destroys data, with {sent}. Do you allow it?");
    let schema = json!({
        "type": "object",
        "properties": { "allow": { "type": "boolean", "title": "Allow it, this once", "default": false } },
        "required": ["allow"],
    });
    match context.elicit(KEY, question, schema).await {
        Ok(answer) => answer.accepted().is_some_and(|Permission { allow }| allow),
        Err(error) => {
            tracing::warn!(tool, %error, "nobody could be asked for permission");
            false
        }
    }
}

/// Arguments for a person to read: all of what is usual, and nothing that changes how the rest looks.
fn shown(arguments: &str) -> String {
    const MOST: usize = 2000;
    let plain = |letter: &char| {
        !letter.is_control()
            && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown: String = arguments.chars().filter(plain).take(MOST).collect();
    if arguments.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

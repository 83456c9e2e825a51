//! `prompts/get`: renders a prompt.

use serde::Deserialize;
use serde_json::json;

use super::audited::AuditedCall;
use super::multi_round_trip::{RoundTrip, RoundTripInput, RoundTripOutcome};
use crate::audit::AuditOutcome;
use crate::dispatch::{MethodCall, truncate_owned};
use crate::error::Error;
use crate::prompt::PromptArguments;
use crate::reply::MethodReply;

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<PromptArguments>,
    #[serde(flatten)]
    input: RoundTripInput,
}

pub(crate) async fn get(call: MethodCall) -> Result<MethodReply, Error> {
    let Params { name, arguments, input: brought } = call.params.parse()?;
    let arguments = arguments.unwrap_or_default();
    let Some(prompt) = call.server.prompts().get(&name).cloned() else {
        return Err(Error::PromptNotFound { name: truncate_owned(&name) });
    };
    prompt.check(&arguments)?;
    let given = json!(arguments);
    let mut recorded = AuditedCall::begin_authorized("prompts/get", &call);
    let round = RoundTrip::begin(&call, "prompts/get", &name, &given, brought)?;
    let context = call.context(round.channel.clone());
    let limit = Some(call.server.limits().tool_timeout);
    match round.run(&context, &name, limit, (prompt.get)(context.clone(), arguments)).await? {
        RoundTripOutcome::InputRequired(open) => {
            recorded.outcome = AuditOutcome::Success;
            Ok(round.input_required_reply(&call, "prompts/get", &name, &given, open))
        }
        RoundTripOutcome::Finished(result) => {
            let result = result?;
            recorded.outcome = AuditOutcome::Success;
            Ok(MethodReply::new(json!(result)))
        }
    }
}

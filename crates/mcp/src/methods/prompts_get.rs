//! `prompts/get`: renders a prompt.

use serde::Deserialize;
use serde_json::json;

use super::recorded::Recorded;
use super::rounds::{Brought, Round, Stopped};
use crate::audit::AuditOutcome;
use crate::dispatch::{Call, clip};
use crate::error::Error;
use crate::prompt::PromptArguments;
use crate::reply::Reply;

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<PromptArguments>,
    #[serde(flatten)]
    brought: Brought,
}

pub(crate) async fn get(call: Call) -> Result<Reply, Error> {
    let Params { name, arguments, brought } = call.params.parse()?;
    let arguments = arguments.unwrap_or_default();
    let Some(prompt) = call.server.prompts().get(&name).cloned() else {
        return Err(Error::PromptNotFound { name: clip(&name) });
    };
    prompt.check(&arguments)?;
    let given = json!(arguments);
    let mut recorded = Recorded::open("prompts/get", &call);
    let round = Round::begin(&call, "prompts/get", &name, &given, brought)?;
    let context = call.context(round.asking.clone());
    let limit = Some(call.server.limits().tool_timeout);
    match round.run(&context, &name, limit, (prompt.get)(context.clone(), arguments)).await? {
        Stopped::Asks(open) => {
            recorded.outcome = AuditOutcome::Success;
            Ok(round.ask(&call, "prompts/get", &name, &given, open))
        }
        Stopped::Finished(result) => {
            let result = result?;
            recorded.outcome = AuditOutcome::Success;
            Ok(Reply::new(json!(result)))
        }
    }
}

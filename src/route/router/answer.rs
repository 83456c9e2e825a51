//! Calls one candidate after the other until one responds.

use std::time::Instant as Clock;

use tokio::time::Instant;

use super::walk::Walk;
use super::{Ask, Contender, Router};
use crate::config::providers::Price;
use crate::providers::call::Call;
use crate::providers::provider::Provider;
use crate::providers::{self, Question};
use crate::route::bring::Bring;
use crate::route::error::Error;
use crate::route::ground::Grounds;
use crate::route::journey::Journey;
use crate::route::prompt;

impl Router {
    /// Calls candidates in order until one responds.
    pub(super) async fn answer<B: Bring>(
        &self,
        ask: Ask,
        journey: &mut Journey,
    ) -> Result<(B::Answer, Option<Price>), Error> {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let Ask { mut question, model, caller, documents } = ask;
        if let Some(caller) = caller {
            self.check_budget(&caller)?;
        }
        let wish = self.wish(model.as_deref())?;
        // A request that names its model needs no parsing.
        let prompt = match (wish.model, &question) {
            (Some(_), Question::AsItCame { .. }) => String::new(),
            _ => {
                let chat = question.read().map_err(Error::Unread)?;
                let prompt = prompt::question(&chat);
                // A passthrough request may have content that only its provider understands.
                if prompt.is_empty() && chat.raw.is_none() && !prompt::shows_something(&chat) {
                    return Err(Error::NoPrompt);
                }
                question = chat.into();
                prompt
            }
        };
        let plan = self.resolve(&prompt, wish, documents, deadline).await?;
        journey.planned(&plan);
        let mut asked_reasoning = None;
        if let Question::Read(chat) = &mut question {
            prompt::with_system_prompt(chat, &plan.decision, wish.settings.system_prompt);
            if let Some(passages) = plan.grounds.as_ref().and_then(Grounds::prompt) {
                prompt::with_passages(chat, &passages);
            }
            asked_reasoning = chat.reasoning;
        }
        let mut walk = Walk::along(&plan.candidates, wish.settings.failover, deadline);
        while let Some((contender, hope)) = walk.step() {
            let Contender { provider, candidate, price } = contender;
            question.ask_for(&candidate.model);
            if !provider.takes_as_it_came() && !question.is_read() {
                question = question.read().map_err(Error::Unread)?.into();
            }
            if let (Question::Read(chat), Some(_)) = (&mut question, &plan.decision.category) {
                let (wanted, effort) = (plan.decision.use_reasoning, wish.settings.reasoning_effort);
                chat.reasoning =
                    prompt::reasoning(asked_reasoning, wanted, can_think(provider, &candidate.model), effort);
            }
            let started = Clock::now();
            let call = Call { provider, key: candidate.key, question: &question, deadline, hope };
            let outcome = B::bring(call).await;
            if let Some(answer) = walk.attempted(contender, outcome, started, journey) {
                return Ok((answer, *price));
            }
        }
        let error = walk.failed();
        // The model was only recommended. The error reports a missing model, which the operator can configure.
        match &error {
            Error::Provider { provider, model: missing, error: providers::Error::ModelNotFound, .. }
                if wish.model.is_none() =>
            {
                let advised = vec![format!("{provider}/{missing}")];
                Err(Error::NoModel { advised, stays: plan.decision.stays() })
            }
            _ => Err(error),
        }
    }
}

/// Whether reasoning is among the known capabilities of a model. Its adapter knows which parameters it accepts.
fn can_think(provider: &Provider, model: &str) -> bool {
    provider.known(model).capabilities.reasoning == Some(true)
}

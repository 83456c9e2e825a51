//! Takes a prompt from one model to the next until somebody answers.

use std::time::Instant as Clock;

use tokio::time::Instant;

use super::{Ask, Contender, Router, today};
use crate::config::providers::Price;
use crate::providers::call::{Call, Hope, Outcome};
use crate::providers::provider::Provider;
use crate::providers::{self, Question};
use crate::route::bring::Bring;
use crate::route::candidates::Candidate;
use crate::route::decide::Why;
use crate::route::error::Error;
use crate::route::ground::Grounds;
use crate::route::journey::Journey;
use crate::route::prompt;

impl Router {
    /// Asks one after the other until somebody answers.
    pub(super) async fn answer<B: Bring>(
        &self,
        ask: Ask,
        journey: &mut Journey,
    ) -> Result<(B::Answer, Option<Price>), Error> {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let Ask { mut question, model, caller, documents } = ask;
        if let Some(caller) = caller {
            let today = today();
            self.0.budgets.check(&caller, today).map_err(|used_up| Error::OverBudget { used_up, left: today.left })?;
        }
        let wish = self.wish(model.as_deref())?;
        // Whoever names a model says nothing that we have to read.
        let prompt = match (wish.model, &question) {
            (Some(_), Question::AsItCame { .. }) => String::new(),
            _ => {
                let chat = question.read().map_err(Error::Unread)?;
                let prompt = prompt::question(&chat);
                // What came as it is may have content that only its provider understands.
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
        let mut worst: Option<Error> = None;
        for (place, Contender { provider, candidate, price }) in plan.candidates.iter().enumerate() {
            question.ask_for(&candidate.model);
            if !provider.takes_as_it_came() && !question.is_read() {
                question = question.read().map_err(Error::Unread)?.into();
            }
            if let (Question::Read(chat), Some(_)) = (&mut question, &plan.decision.category) {
                let (wanted, effort) = (plan.decision.use_reasoning, wish.settings.reasoning_effort);
                chat.reasoning =
                    prompt::reasoning(asked_reasoning, wanted, can_think(provider, &candidate.model), effort);
            }
            let hope =
                hope(wish.settings.failover, candidate, plan.candidates.get(place + 1).map(|next| &next.candidate));
            let started = Clock::now();
            let call = Call { provider, key: candidate.key, question: &question, deadline, hope };
            let Outcome { result, attempts } = B::bring(call).await;
            journey.attempted(provider, candidate, attempts, started, result.as_ref().err());
            let error = match result {
                Ok(answer) => {
                    journey.chosen(provider, candidate);
                    return Ok((answer, *price));
                }
                Err(error) => error,
            };
            let go_on = goes_on(wish.settings.failover, &error, candidate) && Instant::now() < deadline;
            let (provider, model, asked) = (provider.name.clone(), candidate.model.clone(), place + 1);
            worst = Some(Error::Provider { provider, model, error, asked }.unless(worst));
            if !go_on {
                break;
            }
        }
        let error = worst.expect("a plan that was resolved has somebody to ask");
        // Nobody named that model but the categories: what is missing is a model, and the operator can name one.
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

/// Whether the next is asked. A model that was only advised and is not there is passed over in any case.
pub(super) fn goes_on(failover: bool, error: &providers::Error, candidate: &Candidate) -> bool {
    let missing = *error == providers::Error::ModelNotFound && candidate.why != Why::Asked;
    error.another_may_help() && (missing || failover)
}

pub(super) fn hope(failover: bool, candidate: &Candidate, next: Option<&Candidate>) -> Hope {
    let next = next.filter(|_| failover);
    let same = |next: &Candidate| next.provider == candidate.provider && next.model == candidate.model;
    Hope { key: next.is_some_and(same), anybody: next.is_some() }
}

/// Whether a model is known to think. What it takes of how much, its adapter knows.
fn can_think(provider: &Provider, model: &str) -> bool {
    provider.known(model).capabilities.reasoning == Some(true)
}

//! Calls one candidate after the other until one responds.

use std::time::Instant as Clock;

use tokio::time::Instant;

use super::failover::FailoverIter;
use super::{ResolvedCandidate, RouteRequest, Router};
use crate::error::Error;
use crate::grounding::GroundingResult;
use crate::prompt;
use crate::response_mode::ResponseMode;
use crate::routed_request::RoutedRequest;
use corbie_config::providers::Price;
use corbie_llm::call::ProviderCall;
use corbie_llm::provider::Provider;
use corbie_llm::{self as providers, ChatRequest};

impl Router {
    /// Calls candidates in order until one responds.
    pub(super) async fn answer<B: ResponseMode>(
        &self,
        ask: RouteRequest,
        journey: &mut RoutedRequest,
    ) -> Result<(B::Answer, Option<Price>), Error> {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let RouteRequest { request: mut question, model, caller, documents } = ask;
        if let Some(caller) = caller {
            self.check_budget(&caller)?;
        }
        let wish = self.model_selector(model.as_deref())?;
        // A request that names its model needs no parsing.
        let prompt = match (wish.model, &question) {
            (Some(_), ChatRequest::Passthrough { .. }) => String::new(),
            _ => {
                let chat = question.into_chat().map_err(Error::InvalidRequest)?;
                let prompt = prompt::last_user_text(&chat);
                // A passthrough request may have content that only its provider understands.
                if prompt.is_empty() && chat.raw.is_none() && !prompt::has_non_text_content(&chat) {
                    return Err(Error::NoPrompt);
                }
                question = chat.into();
                prompt
            }
        };
        let plan = self.resolve(&prompt, wish, documents, deadline).await?;
        journey.record_plan(&plan);
        let mut asked_reasoning = None;
        if let ChatRequest::Parsed(chat) = &mut question {
            prompt::with_system_prompt(chat, &plan.decision, wish.settings.system_prompt);
            if let Some(passages) = plan.grounding.as_ref().and_then(GroundingResult::prompt) {
                prompt::with_passages(chat, &passages);
            }
            asked_reasoning = chat.reasoning;
        }
        let mut walk = FailoverIter::new(&plan.candidates, wish.settings.failover, deadline);
        while let Some((contender, hope)) = walk.next_attempt() {
            let ResolvedCandidate { provider, candidate, price } = contender;
            question.set_model(&candidate.model);
            if !provider.accepts_passthrough() && !question.is_parsed() {
                question = question.into_chat().map_err(Error::InvalidRequest)?.into();
            }
            if let (ChatRequest::Parsed(chat), Some(_)) = (&mut question, &plan.decision.category) {
                let (wanted, effort) = (plan.decision.use_reasoning, wish.settings.reasoning_effort);
                chat.reasoning =
                    prompt::reasoning(asked_reasoning, wanted, supports_reasoning(provider, &candidate.model), effort);
            }
            let started = Clock::now();
            let call = ProviderCall { provider, key: candidate.key, request: &question, deadline, failover: hope };
            let outcome = B::request(call).await;
            if let Some(answer) = walk.record_outcome(contender, outcome, started, journey) {
                return Ok((answer, *price));
            }
        }
        let error = walk.into_error();
        // The model was only recommended. The error reports a missing model, which the operator can configure.
        match &error {
            Error::Provider { provider, model: missing, error: providers::Error::ModelNotFound, .. }
                if wish.model.is_none() =>
            {
                let advised = vec![format!("{provider}/{missing}")];
                Err(Error::NoModel { advised, stays: plan.decision.is_pinned_local() })
            }
            _ => Err(error),
        }
    }
}

/// Whether reasoning is among the known capabilities of a model. Its adapter knows which parameters it accepts.
fn supports_reasoning(provider: &Provider, model: &str) -> bool {
    provider.model_properties(model).capabilities.reasoning == Some(true)
}

//! Takes a prompt to the model that suits it, and to the next one if that fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant as Clock, SystemTime, UNIX_EPOCH};

use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::candidates::{Candidate, Candidates, Rules, candidates};
use super::classifier::{Classifier, Looked};
use super::decide::{Decision, Policy, decide};
use super::error::Error;
use super::metrics::Metrics;
use super::prompt::{self, Thinking};
use super::record::{self, Attempt, Classified, Record, Records, cost};
use super::stream::Answering;
use crate::classify::tools::short;
use crate::config::providers::Price;
use crate::config::router as config;
use crate::locked::locked;
use crate::providers::call::{self, Outcome};
use crate::providers::chat::Usage;
use crate::providers::pool::{FRESH, Pool, offers};
use crate::providers::provider::Provider;
use crate::providers::stream::Stream;
use crate::providers::{self, Chat, Completion};
use crate::upstream::RemoteClassifier;

/// The router of one program. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Router(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Router,
    threshold: f32,
    classifier: Classifier,
    pool: Pool,
    records: Records,
    metrics: Metrics,
    next_id: AtomicU64,
    /// Models that were advised and that nobody serves, as far as the operator was told.
    unserved: Mutex<Vec<String>>,
}

/// What the router is asked.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    pub chat: Chat,
    /// The model the caller names, with or without a provider before it.
    pub model: Option<String>,
}

/// An answer, and how it came about.
#[derive(Debug, Clone)]
pub struct Routed {
    pub completion: Completion,
    pub record: Record,
}

/// What would be done with a prompt.
#[derive(Debug, Clone)]
pub struct Plan {
    pub looked: Option<Looked>,
    pub decision: Decision,
    pub candidates: Vec<Asked>,
    pub unserved: Vec<String>,
}

/// Somebody who can be asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub provider: Arc<Provider>,
    pub candidate: Candidate,
    pub price: Option<Price>,
}

impl Shared {
    /// Says that nobody serves a model that was advised: the first time to the operator, then to those who look closer.
    fn warn_once(&self, model: &str, instead: Option<&String>) {
        let mut told = locked(&self.unserved);
        let known = told.iter().any(|known| known == model);
        if !known && told.len() < MOST_TOLD {
            told.push(model.to_owned());
            tracing::warn!(model, instead, "nobody serves a model that was advised");
        } else {
            tracing::debug!(model, instead, "nobody serves a model that was advised");
        }
    }
}

impl Router {
    pub fn new(settings: config::Router, threshold: f32, classifier: Classifier, pool: Pool) -> Router {
        Router(Arc::new(Shared {
            records: Records::new(settings.decisions),
            settings,
            threshold,
            classifier,
            pool,
            metrics: Metrics::default(),
            next_id: AtomicU64::new(1),
            unserved: Mutex::default(),
        }))
    }

    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// The server elsewhere that classifies prompts, if there is one.
    pub fn external_classifier(&self) -> Option<&RemoteClassifier> {
        self.0.classifier.external()
    }

    pub fn records(&self) -> &Records {
        &self.0.records
    }

    pub fn settings(&self) -> &config::Router {
        &self.0.settings
    }

    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
    }

    /// Says what would be done with a prompt, without asking anybody.
    pub async fn plan(&self, prompt: &str, model: Option<&str>) -> Plan {
        let looked = match model {
            Some(_) => None,
            None if !self.0.settings.enabled => None,
            None => self.0.classifier.look(prompt).await,
        };
        let policy = Policy {
            threshold: self.0.threshold,
            fallbacks: self.0.settings.fallbacks.clone(),
            default_model: self.0.pool.default_model(),
            replace_pinned: self.0.settings.replace_pinned,
        };
        let decision = decide(model, looked.as_ref().map(|looked| &looked.seen), &policy);
        let providers = self.0.pool.providers();
        let (offers, now) = (offers(&providers), Clock::now());
        let rules = Rules { default_provider: self.0.pool.default_provider(), failover: self.0.settings.failover };
        let lacks = |provider: usize, model: &str| providers[provider].lacks(model, now);
        let Candidates { asked, unserved } = candidates(&decision.models, &offers, lacks, rules);
        let candidates = asked.into_iter().map(|candidate| {
            let provider = providers[candidate.provider].clone();
            Asked { price: provider.price(&candidate.model), provider, candidate }
        });
        Plan { looked, decision, candidates: candidates.collect(), unserved }
    }

    /// Brings a whole answer.
    pub async fn ask(&self, ask: Ask) -> Result<Routed, Error> {
        let mut journey = self.begin(&ask);
        let ask = Ask { chat: Chat { stream: false, ..ask.chat }, ..ask };
        match self.answer(ask, &mut journey).await {
            Ok((answer, price)) => {
                let completion = answer.whole();
                let record = journey.answered(completion.usage, price);
                Ok(Routed { completion, record })
            }
            Err(error) => {
                journey.failed(&error);
                Err(error)
            }
        }
    }

    /// Brings an answer in pieces. Once the first has come, a failure is told in the stream.
    pub async fn stream(&self, ask: Ask) -> Result<Answering, Error> {
        let mut journey = self.begin(&ask);
        let ask = Ask { chat: Chat { stream: true, ..ask.chat }, ..ask };
        match self.answer(ask, &mut journey).await {
            Ok((answer, price)) => Ok(Answering::new(answer.pieces(), journey, price)),
            Err(error) => {
                journey.failed(&error);
                Err(error)
            }
        }
    }

    fn begin(&self, ask: &Ask) -> Journey {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = Record {
            id: self.0.next_id.fetch_add(1, Ordering::Relaxed),
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            asked: ask.model.clone(),
            ..Record::default()
        };
        Journey { router: self.clone(), record, started: Clock::now(), ended: false }
    }

    /// Asks one after the other until somebody answers.
    async fn answer(&self, ask: Ask, journey: &mut Journey) -> Result<(Answer, Option<Price>), Error> {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let Ask { mut chat, model } = ask;
        let question = prompt::question(&chat);
        if question.is_empty() && !prompt::shows_something(&chat) {
            return Err(Error::NoPrompt);
        }
        let plan = self.resolve(&question, model.as_deref()).await?;
        journey.planned(&plan);
        prompt::with_system_prompt(&mut chat, &plan.decision, self.0.settings.system_prompt);
        let asked_reasoning = chat.reasoning;
        let mut last = None;
        for Asked { provider, candidate, price } in plan.candidates {
            chat.model.clone_from(&candidate.model);
            let wanted = plan.decision.use_reasoning;
            chat.reasoning = match plan.decision.category {
                Some(_) => prompt::reasoning(
                    asked_reasoning,
                    wanted,
                    thinking(&provider, &candidate.model),
                    self.0.settings.reasoning_effort,
                ),
                None => asked_reasoning,
            };
            let started = Clock::now();
            let Outcome { result, attempts } = Answer::of(&provider, candidate.key, &chat, deadline).await;
            journey.attempted(&provider, &candidate, attempts, started, result.as_ref().err());
            match result {
                Ok(answer) => {
                    journey.chosen(&provider, &candidate);
                    return Ok((answer, price));
                }
                Err(error) => {
                    let go_on = error.another_may_help() && Instant::now() < deadline;
                    let asked = journey.record.attempts.len();
                    last =
                        Some(Error::Provider { provider: provider.name.clone(), model: candidate.model, error, asked });
                    if !go_on {
                        break;
                    }
                }
            }
        }
        let error = last.expect("a plan that was resolved has somebody to ask");
        // Nobody named that model but the categories: what is missing is a model, and the operator can name one.
        match &error {
            Error::Provider { provider, model: missing, error: providers::Error::ModelNotFound, .. }
                if model.is_none() =>
            {
                Err(Error::NoModel { advised: vec![format!("{provider}/{missing}")] })
            }
            _ => Err(error),
        }
    }

    /// A plan with at least one to ask. Where nobody is known to serve a model, everybody is asked for their models.
    async fn resolve(&self, question: &str, model: Option<&str>) -> Result<Plan, Error> {
        let plan = self.plan(question, model).await;
        if !plan.candidates.is_empty() {
            return Ok(plan);
        }
        self.0.pool.list(FRESH).await;
        let plan = self.plan(question, model).await;
        if !plan.candidates.is_empty() {
            return Ok(plan);
        }
        Err(match model {
            _ if self.0.pool.providers().is_empty() => Error::NoProvider,
            Some(model) => Error::UnknownModel { model: clip(model), near: self.near(model) },
            None => Error::NoModel { advised: plan.unserved },
        })
    }

    /// Models whose names are like this one.
    fn near(&self, model: &str) -> Vec<String> {
        let wanted = model.to_lowercase();
        let known = self.0.pool.known().models;
        let mut near: Vec<(f64, String)> = known
            .iter()
            .map(|offered| {
                let id = offered.model.id.to_lowercase();
                let part = if id.contains(&wanted) || wanted.contains(&id) { 0.3 } else { 0.0 };
                (strsim::jaro_winkler(&id, &wanted) + part, offered.model.id.clone())
            })
            .filter(|(score, _)| *score > LIKE)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        near.dedup_by(|a, b| a.1 == b.1);
        near.into_iter().take(MOST_NEAR).map(|(_, id)| id).collect()
    }
}

/// What a provider answered: all of it, or the beginning.
enum Answer {
    Whole(Completion),
    Pieces(Stream),
}

impl Answer {
    /// As the chat asks for it.
    async fn of(provider: &Arc<Provider>, key: usize, chat: &Chat, deadline: Instant) -> Outcome<Answer> {
        if chat.stream {
            let Outcome { result, attempts } = call::open(provider, key, chat, deadline).await;
            return Outcome { result: result.map(Answer::Pieces), attempts };
        }
        let Outcome { result, attempts } = call::complete(provider, key, chat, deadline).await;
        Outcome { result: result.map(Answer::Whole), attempts }
    }

    fn whole(self) -> Completion {
        match self {
            Answer::Whole(completion) => completion,
            Answer::Pieces(_) => unreachable!("a chat that asks for no stream gets none"),
        }
    }

    fn pieces(self) -> Stream {
        match self {
            Answer::Pieces(stream) => stream,
            Answer::Whole(_) => unreachable!("a chat that asks for a stream gets one"),
        }
    }
}

/// Names that are less alike are no suggestion.
const LIKE: f64 = 0.85;
const MOST_NEAR: usize = 3;
/// How many unserved models the operator is told of.
const MOST_TOLD: usize = 64;

/// A prompt on its way. Whatever becomes of it, there is one record of it: dropped before its end, it was cancelled.
#[derive(Debug)]
pub(super) struct Journey {
    router: Router,
    record: Record,
    started: Clock,
    ended: bool,
}

impl Journey {
    fn planned(&mut self, plan: &Plan) {
        let record = &mut self.record;
        let name = |option: &Asked| format!("{}/{}", option.provider.name, option.candidate.model);
        record.candidates = plan.candidates.iter().map(name).collect();
        record.candidates.dedup();
        record.unserved.clone_from(&plan.unserved);
        record.use_reasoning = plan.decision.use_reasoning;
        record.classified = plan.looked.as_ref().map(|looked| Classified {
            category: plan.decision.category.clone().unwrap_or_default(),
            class: looked.class,
            confidence: short(looked.seen.confidence),
            entropy: looked.entropy,
            method: looked.method.to_owned(),
            fell_back: plan.decision.fell_back,
            took_ms: looked.took.as_secs_f64() * 1e3,
        });
        for model in &plan.unserved {
            self.router.0.warn_once(model, record.candidates.first());
        }
    }

    fn attempted(
        &mut self,
        provider: &Provider,
        candidate: &Candidate,
        requests: usize,
        started: Clock,
        error: Option<&providers::Error>,
    ) {
        let took = started.elapsed();
        self.router.0.metrics.attempted(&provider.name, error.map_or("ok", |error| error.kind()), took);
        if let Some(error) = error {
            tracing::warn!(provider = provider.name, model = candidate.model, requests, %error, "no answer");
        }
        self.record.attempts.push(Attempt {
            provider: provider.name.clone(),
            model: candidate.model.clone(),
            key: candidate.key + 1,
            requests,
            took_ms: took.as_secs_f64() * 1e3,
            result: error.map_or("ok", |error| error.kind()).to_owned(),
        });
    }

    fn chosen(&mut self, provider: &Provider, candidate: &Candidate) {
        let record = &mut self.record;
        record.provider = Some(provider.name.clone());
        record.model = Some(candidate.model.clone());
        record.why = candidate.why.as_str().to_owned();
        if let super::Why::Rule(rule) = &candidate.why {
            record.rule = Some(rule.clone());
        }
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    /// It ended well; gives its record.
    pub(super) fn answered(&mut self, usage: Usage, price: Option<Price>) -> Record {
        self.record.outcome = record::Outcome::Answered;
        self.record.usage = Some(record::Tokens::from(usage));
        self.record.cost = price.map(|price| cost(usage, price));
        self.end();
        self.record.clone()
    }

    pub(super) fn failed(&mut self, error: &Error) {
        self.record.outcome = record::Outcome::Failed;
        self.record.error = Some(error.kind().to_owned());
        self.end();
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let record = &mut self.record;
        record.latency_ms = self.started.elapsed().as_secs_f64() * 1e3;
        tracing::info!(
            id = record.id,
            provider = record.provider,
            model = record.model,
            category = record.classified.as_ref().map(|classified| classified.category.as_str()),
            why = record.why,
            rule = record.rule,
            reasoning = record.use_reasoning,
            attempts = record.attempts.len(),
            outcome = ?record.outcome,
            error = record.error,
            ms = record.latency_ms.round(),
            "routed"
        );
        self.router.0.metrics.ended(record);
        self.router.0.records.keep(record.clone());
    }
}

impl Drop for Journey {
    fn drop(&mut self) {
        self.end();
    }
}

/// What is known of how a model thinks.
fn thinking(provider: &Provider, model: &str) -> Thinking {
    let known = provider.known(model);
    let can = known.capabilities.reasoning == Some(true);
    Thinking { can, can_stop: can && !known.refuses().reasoning_off }
}

/// A caller's word in our message, bounded.
fn clip(text: &str) -> String {
    text.chars().take(128).collect()
}

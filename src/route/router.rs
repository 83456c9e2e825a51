//! Takes a prompt to the model that suits it, and to the next one if that fails.

mod embed;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant as Clock, SystemTime, UNIX_EPOCH};

use corbie_mcp::Caller;
use prometheus_client::registry::Registry;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::bring::{AsItCame, Bring, InPieces, Whole};
use super::budget::{Budgets, Today};
use super::candidates::{Candidate, Candidates, candidates};
use super::classifier::{Classifier, Looked};
use super::decide::{Decision, Policy, Why, decide};
use super::error::Error;
use super::ground::{self, Documents, Grounds, Say, Verdict};
use super::journey::Journey;
use super::metrics::Metrics;
use super::near::near;
use super::prompt;
use super::record::{Record, Records};
use super::stream::Answering;
use super::wish::{AUTO, Named, Wish};
use crate::config::providers::Price;
use crate::config::router as config;
use crate::knowledge::Knowledge;
use crate::locked::locked;
use crate::providers::call::{Call, Hope, Outcome};
use crate::providers::catalog::By;
use crate::providers::pool::{FRESH, Listing, Pool, offers};
use crate::providers::provider::Provider;
use crate::providers::{self, Answered, Completion, Question};
use crate::upstream::RemoteClassifier;

pub use embed::RoutedVectors;

/// The router of one program. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Router(Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    settings: config::Router,
    threshold: f32,
    classifier: Classifier,
    pool: Pool,
    pub(super) records: Records,
    pub(super) metrics: Metrics,
    pub(super) budgets: Budgets,
    policies: BTreeMap<String, Named>,
    next_id: AtomicU64,
    /// Models that were advised and that nobody serves, as far as the operator was told.
    unserved: Mutex<Vec<String>>,
    /// The documents, where they have a say.
    knowledge: OnceLock<Knowledge>,
}

/// What the router is asked.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    pub question: Question,
    /// The model the caller names, with or without a provider before it.
    pub model: Option<String>,
    /// Who asks, and pays; nobody does on the command line.
    pub caller: Option<Arc<str>>,
    /// What documents may say about it.
    pub documents: Documents,
}

/// An answer, and how it came about.
#[derive(Debug, Clone)]
pub struct Routed {
    pub completion: Completion,
    pub record: Record,
}

/// What would be done with a prompt.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub looked: Option<Looked>,
    /// What the documents know, where they have a say.
    pub grounds: Option<Grounds>,
    /// What that changes.
    pub say: Option<Say>,
    pub decision: Decision,
    /// Who would be asked, in order.
    pub candidates: Vec<Contender>,
    pub unserved: Vec<String>,
}

/// Somebody who can be asked.
#[derive(Debug, Clone)]
pub struct Contender {
    pub provider: Arc<Provider>,
    pub candidate: Candidate,
    pub price: Option<Price>,
}

/// No model has a longer name.
const LONGEST_NAME: usize = 256;
/// How many unserved models the operator is told of.
const MOST_TOLD: usize = 64;

impl Router {
    pub fn new(settings: config::Router, threshold: f32, classifier: Classifier, pool: Pool) -> Router {
        Router(Arc::new(Shared {
            records: Records::new(settings.decisions),
            budgets: Budgets::new(settings.budget),
            policies: settings
                .policies
                .iter()
                .map(|(name, policy)| (name.clone(), Named::new(policy, &settings)))
                .collect(),
            settings,
            threshold,
            classifier,
            pool,
            metrics: Metrics::default(),
            next_id: AtomicU64::new(1),
            unserved: Mutex::default(),
            knowledge: OnceLock::new(),
        }))
    }

    /// Lets documents have a say, as far as the settings want it.
    pub fn ground(&self, knowledge: Knowledge) {
        let _ = self.0.knowledge.set(knowledge);
    }

    /// What documents may say about the prompts of a caller: its token may keep it from the base they are in.
    pub fn documents_for(&self, caller: &Caller) -> Documents {
        match caller.may_use("knowledge-search") && caller.may_see(&self.0.settings.grounding.knowledge_base) {
            true => Documents::Asked,
            false => Documents::Hidden,
        }
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
        providers::metrics::register(&self.0.pool, registry);
    }

    /// Says what would be done with a prompt, without asking any model.
    pub async fn plan(&self, prompt: &str, model: Option<&str>, documents: Documents) -> Plan {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let Ok(wish) = self.wish(model) else { return Plan::unserved(model) };
        let seen = self.see(prompt, wish, documents, deadline).await;
        self.plan_for(seen, wish)
    }

    /// The same, after asking for lists of models where asking the prompt would; and why nobody can be asked, if so.
    pub async fn explain(&self, prompt: &str, model: Option<&str>, documents: Documents) -> (Plan, Option<Error>) {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let wish = match self.wish(model) {
            Ok(wish) => wish,
            Err(error) => return (Plan::unserved(model), Some(error)),
        };
        let plan = match self.settle(prompt, wish, documents, deadline).await {
            Ok(plan) => plan,
            Err(_) => self.plan(prompt, model, documents).await,
        };
        let nobody = plan.candidates.is_empty().then(|| self.nobody(plan.clone(), wish.model));
        (plan, nobody)
    }

    /// Brings a whole answer.
    pub async fn ask(&self, mut ask: Ask) -> Result<Routed, Error> {
        let mut journey = self.begin(ask.model.as_deref(), ask.caller.clone());
        ask.question.wants_pieces(false);
        let span = journey.span();
        match self.answer::<Whole>(ask, &mut journey).instrument(span).await {
            Ok((completion, price)) => {
                let record = journey.answered(completion.usage, price);
                Ok(Routed { completion, record })
            }
            Err(error) => Err(journey.failed(error)),
        }
    }

    /// Brings a whole answer to a caller who speaks OpenAI's protocol, as it came if it came in that.
    pub async fn pass_on(&self, ask: Ask) -> Result<(Answered, Record), Error> {
        let mut journey = self.begin(ask.model.as_deref(), ask.caller.clone());
        let span = journey.span();
        match self.answer::<AsItCame>(ask, &mut journey).instrument(span).await {
            Ok((answered, price)) => {
                let record = journey.answered(answered.usage(), price);
                Ok((answered, record))
            }
            Err(error) => Err(journey.failed(error)),
        }
    }

    /// Brings an answer in pieces. Once the first has come, a failure is told in the stream.
    pub async fn stream(&self, mut ask: Ask) -> Result<Answering, Error> {
        let mut journey = self.begin(ask.model.as_deref(), ask.caller.clone());
        ask.question.wants_pieces(true);
        // A token has about four letters.
        let read = ask.question.size() as u64 / 4;
        let span = journey.span();
        match self.answer::<InPieces>(ask, &mut journey).instrument(span).await {
            Ok((stream, price)) => Ok(Answering::new(stream, journey, price, read)),
            Err(error) => Err(journey.failed(error)),
        }
    }

    /// Notes that an answer was given again which a model had given before.
    pub fn given_again(&self, asked: Option<&str>, provider: &str, model: &str) -> Record {
        self.begin(asked, None).given_again(provider, model)
    }

    fn begin(&self, asked: Option<&str>, caller: Option<Arc<str>>) -> Journey {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = Record {
            id: self.0.next_id.fetch_add(1, Ordering::Relaxed),
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            asked: asked.filter(|model| *model != AUTO).map(clip),
            caller: caller.clone(),
            ..Record::default()
        };
        Journey::begin(self.0.clone(), record, caller)
    }

    /// Asks one after the other until somebody answers.
    async fn answer<B: Bring>(&self, ask: Ask, journey: &mut Journey) -> Result<(B::Answer, Option<Price>), Error> {
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

    /// What a caller wants who names this model.
    fn wish<'a>(&'a self, model: Option<&'a str>) -> Result<Wish<'a>, Error> {
        let policies = &self.0.policies;
        Wish::of(model, &self.0.settings, |name| policies.get(name)).map_err(|_| Error::UnknownModel {
            model: clip(model.unwrap_or_default()),
            near: policies.keys().map(|name| format!("{AUTO}:{name}")).collect(),
            unlisted: Vec::new(),
        })
    }

    /// The names that have a model chosen.
    pub fn autos(&self) -> impl Iterator<Item = String> {
        std::iter::once(AUTO.to_owned()).chain(self.0.policies.keys().map(|name| format!("{AUTO}:{name}")))
    }

    /// A plan with at least one to ask.
    async fn resolve(
        &self,
        question: &str,
        wish: Wish<'_>,
        documents: Documents,
        deadline: Instant,
    ) -> Result<Plan, Error> {
        if let Some(model) = wish.model.filter(|model| model.len() > LONGEST_NAME) {
            return Err(Error::UnknownModel { model: clip(model), near: Vec::new(), unlisted: Vec::new() });
        }
        let plan = self.settle(question, wish, documents, deadline).await?;
        if plan.candidates.is_empty() { Err(self.nobody(plan, wish.model)) } else { Ok(plan) }
    }

    /// The plan once it is certain. Where nobody is surely known to serve a model, everybody is asked for theirs.
    async fn settle(
        &self,
        question: &str,
        wish: Wish<'_>,
        documents: Documents,
        deadline: Instant,
    ) -> Result<Plan, Error> {
        let seen = self.see(question, wish, documents, deadline).await;
        let plan = self.plan_for(seen, wish);
        if self.is_certain(&plan) {
            return Ok(plan);
        }
        let listing = timeout_at(deadline, self.0.pool.list(self.freshness(&plan)));
        listing.await.map_err(|_| Error::Timeout)?;
        Ok(self.plan_for((plan.looked, plan.grounds), wish))
    }

    /// Why a plan has nobody to ask.
    fn nobody(&self, plan: Plan, model: Option<&str>) -> Error {
        match model {
            _ if self.0.pool.providers().is_empty() => Error::NoProvider,
            Some(model) => {
                let Listing { models, failed } = self.0.pool.known();
                let near = near(model, models.iter().map(|offered| offered.model.id.as_str()));
                let unlisted = failed.into_iter().map(|(provider, _)| provider).collect();
                Error::UnknownModel { model: clip(model), near, unlisted }
            }
            None => Error::NoModel { stays: plan.decision.stays(), advised: plan.unserved },
        }
    }

    /// Whether asking for more lists could change nothing: a list that is not known yet may have the model too.
    fn is_certain(&self, plan: &Plan) -> bool {
        let Some(first) = plan.candidates.first() else { return false };
        let sure = match first.candidate.by {
            By::Prefix | By::Family => true,
            By::List => !first.provider.detected,
            By::Default => false,
        };
        let providers = self.0.pool.providers();
        let is_known = |provider: &Arc<Provider>| {
            let state = provider.state();
            provider.detected || state.listed.is_some() || state.not_listed.is_some()
        };
        (sure && plan.unserved.is_empty()) || providers.iter().all(is_known)
    }

    /// Somebody may just have been given a model that nobody had.
    fn freshness(&self, plan: &Plan) -> std::time::Duration {
        if plan.candidates.is_empty() { FRESH / 20 } else { FRESH }
    }

    /// What the classifier says, where it has a say. It may take half of the time there is.
    ///
    /// A policy that does not classify still keeps what must stay: its prompts are looked at, and those of other
    /// categories are then treated as if they were not.
    async fn look(&self, prompt: &str, wish: Wish<'_>, deadline: Instant) -> Option<Looked> {
        let (enabled, stay) = (wish.settings.enabled, &wish.settings.stay);
        let guards = self.0.settings.enabled && !stay.is_empty();
        if wish.model.is_some() || !(enabled || guards) {
            return None;
        }
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let looked = timeout_at(half, self.0.classifier.look(prompt)).await.ok().flatten()?;
        let stays = || self.decide(Some(&looked), None, wish).category.is_some_and(|category| stay.contains(&category));
        (enabled || stays()).then_some(looked)
    }

    /// What the classifier says, and what the documents know.
    async fn see(
        &self,
        prompt: &str,
        wish: Wish<'_>,
        documents: Documents,
        deadline: Instant,
    ) -> (Option<Looked>, Option<Grounds>) {
        let looked = self.look(prompt, wish, deadline).await;
        let settings = &self.0.settings.grounding;
        let stays = || self.decide(looked.as_ref(), None, wish).stays();
        let grounds = match (self.0.knowledge.get(), documents) {
            // What must stay where it is takes no documents along, nor another way.
            _ if wish.model.is_some() || !settings.enabled || stays() => None,
            (_, Documents::Brought(relevance)) => Some(Grounds { relevance, passages: Vec::new() }),
            (Some(knowledge), Documents::Asked) => ground::look(knowledge, settings, prompt).await,
            (_, Documents::Hidden) | (None, Documents::Asked) => None,
        };
        (looked, grounds)
    }

    fn decide(&self, looked: Option<&Looked>, grounds: Option<&Grounds>, wish: Wish<'_>) -> Decision {
        let default_model = wish.default_model.map(str::to_owned);
        let policy = Policy {
            threshold: self.0.threshold,
            settings: wish.settings,
            default_model: default_model.or_else(|| self.0.pool.default_model()),
            grounds: grounds.map(|grounds| Verdict::of(grounds.relevance, &self.0.settings.grounding)),
        };
        decide(wish.model, looked.map(|looked| &looked.seen), &policy)
    }

    fn plan_for(&self, (looked, grounds): (Option<Looked>, Option<Grounds>), wish: Wish<'_>) -> Plan {
        let decision = self.decide(looked.as_ref(), grounds.as_ref(), wish);
        let providers = self.0.pool.providers();
        let now = Clock::now();
        let lacks = |provider: usize, model: &str| providers[provider].lacks(model, now);
        let default = self.0.pool.default_provider();
        let Candidates { asked, unserved } =
            candidates(&decision.models, &offers(&providers), lacks, default.as_deref());
        let candidates = asked.into_iter().map(|candidate| {
            let provider = providers[candidate.provider].clone();
            Contender { price: provider.price(&candidate.model), provider, candidate }
        });
        let say = grounds.as_ref().map(|grounds| Say {
            verdict: Verdict::of(grounds.relevance, &self.0.settings.grounding),
            otherwise: self.decide(looked.as_ref(), None, wish).models.into_iter().next().map(|choice| choice.model),
        });
        Plan { looked, grounds, say, decision, candidates: candidates.collect(), unserved }
    }
}

impl Plan {
    /// For a name that nobody has.
    fn unserved(model: Option<&str>) -> Plan {
        Plan { unserved: model.map(clip).into_iter().collect(), ..Plan::default() }
    }
}

impl Shared {
    /// Says that nobody serves a model that was advised: the first time to the operator, then to those who look closer.
    pub(super) fn warn_once(&self, model: &str, instead: Option<&String>) {
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

/// Whether the next is asked. A model that was only advised and is not there is passed over in any case.
fn goes_on(failover: bool, error: &providers::Error, candidate: &Candidate) -> bool {
    let missing = *error == providers::Error::ModelNotFound && candidate.why != Why::Asked;
    error.another_may_help() && (missing || failover)
}

fn hope(failover: bool, candidate: &Candidate, next: Option<&Candidate>) -> Hope {
    let next = next.filter(|_| failover);
    let same = |next: &Candidate| next.provider == candidate.provider && next.model == candidate.model;
    Hope { key: next.is_some_and(same), anybody: next.is_some() }
}

/// Whether a model is known to think. What it takes of how much, its adapter knows.
fn can_think(provider: &Provider, model: &str) -> bool {
    provider.known(model).capabilities.reasoning == Some(true)
}

/// The day it is.
pub(super) fn today() -> Today {
    Today::at(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// A caller's word in our message, bounded.
fn clip(text: &str) -> String {
    text.chars().take(128).collect()
}

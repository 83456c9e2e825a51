//! Takes a prompt to the model that suits it, and to the next one if that fails.

mod answer;
mod embed;
mod plan;
mod see;
mod walk;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::registry::Registry;
use tracing::Instrument;

use super::bring::{AsItCame, InPieces, Whole};
use super::budget::{Budgets, Today};
use super::classifier::Classifier;
use super::error::Error;
use super::ground::Documents;
use super::journey::Journey;
use super::metrics::Metrics;
use super::record::Record;
use super::records::Records;
use super::stream::Answering;
use super::wish::{AUTO, Named};
use crate::config::router as config;
use crate::knowledge::Knowledge;
use crate::locked::locked;
use crate::providers::pool::Pool;
use crate::providers::{self, Answered, Completion, Question};
use crate::upstream::RemoteClassifier;

pub use embed::RoutedVectors;
pub use plan::{Contender, Plan};

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
    /// Models that were advised and that nobody serves, as far as the operator was told.
    unserved: Mutex<Vec<String>>,
    /// The documents, where they have a say; and the database that instances share.
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
            unserved: Mutex::default(),
            knowledge: OnceLock::new(),
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

    /// The knowledge base, if there is one.
    pub(super) fn knowledge(&self) -> Option<&Knowledge> {
        self.0.knowledge.get()
    }

    /// The names that have a model chosen.
    pub fn autos(&self) -> impl Iterator<Item = String> {
        std::iter::once(AUTO.to_owned()).chain(self.0.policies.keys().map(|name| format!("{AUTO}:{name}")))
    }

    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
        providers::metrics::register(&self.0.pool, registry);
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
            Ok((stream, price)) => {
                Ok(Answering::new(stream, journey, price, read, self.0.settings.stream_timeout.get()))
            }
            Err(error) => Err(journey.failed(error)),
        }
    }

    /// Notes that an answer was given again which a model had given before.
    pub fn given_again(&self, asked: Option<&str>, caller: Arc<str>, provider: &str, model: &str) -> Record {
        self.begin(asked, Some(caller)).given_again(provider, model)
    }

    fn begin(&self, asked: Option<&str>, caller: Option<Arc<str>>) -> Journey {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = Record {
            id: self.0.records.next_id(),
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            asked: asked.filter(|model| *model != AUTO).map(clip),
            caller: caller.clone(),
            ..Record::default()
        };
        Journey::begin(self.0.clone(), record, caller)
    }

    /// Whether a caller may spend more today.
    fn check_budget(&self, caller: &str) -> Result<(), Error> {
        let today = today();
        self.0.budgets.check(caller, today).map_err(|used_up| Error::OverBudget { used_up, left: today.left })
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

/// The day it is.
pub(super) fn today() -> Today {
    Today::at(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// A caller's word in our message, bounded.
fn clip(text: &str) -> String {
    text.chars().take(128).collect()
}

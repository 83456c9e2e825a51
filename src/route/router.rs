//! Router: selects a model for each prompt and fails over to the next candidate.

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

/// The router of this process. Cheap to clone; all clones share their state.
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
    /// Recommended models without a provider that were already logged.
    unserved: Mutex<Vec<String>>,
    /// The knowledge base, for grounding and as the database that instances share.
    knowledge: OnceLock<Knowledge>,
}

/// A request to the router.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    pub question: Question,
    /// The model the caller names, with or without a provider prefix.
    pub model: Option<String>,
    /// The caller who is charged. `None` on the command line.
    pub caller: Option<Arc<str>>,
    /// How the knowledge base is used for the prompt.
    pub documents: Documents,
}

/// A response with its decision record.
#[derive(Debug, Clone)]
pub struct Routed {
    pub completion: Completion,
    pub record: Record,
}

/// Bounds the list of logged models.
const MOST_TOLD: usize = 64;

impl Router {
    pub fn new(settings: config::Router, threshold: f32, classifier: Classifier, pool: Pool) -> Router {
        Router(Arc::new(Shared {
            records: Records::new(settings.max_decisions),
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

    /// The external classifier, if one is configured.
    pub fn external_classifier(&self) -> Option<&RemoteClassifier> {
        self.0.classifier.external()
    }

    pub fn records(&self) -> &Records {
        &self.0.records
    }

    pub fn settings(&self) -> &config::Router {
        &self.0.settings
    }

    /// The knowledge base, if it is enabled.
    pub(super) fn knowledge(&self) -> Option<&Knowledge> {
        self.0.knowledge.get()
    }

    /// The names that select a model automatically: `auto` and `auto:POLICY`.
    pub fn autos(&self) -> impl Iterator<Item = String> {
        std::iter::once(AUTO.to_owned()).chain(self.0.policies.keys().map(|name| format!("{AUTO}:{name}")))
    }

    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
        providers::metrics::register(&self.0.pool, registry);
    }

    /// Returns a buffered response.
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

    /// Returns a buffered response in OpenAI's format, passed through if the provider uses that format.
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

    /// Returns a streaming response. After the first event, a failure is reported in the stream.
    pub async fn stream(&self, mut ask: Ask) -> Result<Answering, Error> {
        let mut journey = self.begin(ask.model.as_deref(), ask.caller.clone());
        ask.question.wants_pieces(true);
        // A token has about four characters.
        let read = ask.question.size() as u64 / 4;
        let span = journey.span();
        match self.answer::<InPieces>(ask, &mut journey).instrument(span).await {
            Ok((stream, price)) => {
                Ok(Answering::new(stream, journey, price, read, self.0.settings.stream_timeout.get()))
            }
            Err(error) => Err(journey.failed(error)),
        }
    }

    /// Records a response from the cache.
    pub fn given_again(&self, asked: Option<&str>, caller: Arc<str>, provider: &str, model: &str) -> Record {
        self.begin(asked, Some(caller)).given_again(provider, model)
    }

    fn begin(&self, asked: Option<&str>, caller: Option<Arc<str>>) -> Journey {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = Record {
            id: self.0.records.next_id(),
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            requested_model: asked.filter(|model| *model != AUTO).map(clip),
            caller: caller.clone(),
            ..Record::default()
        };
        Journey::begin(self.0.clone(), record, caller)
    }

    /// Whether a caller is within budget.
    fn check_budget(&self, caller: &str) -> Result<(), Error> {
        let today = today();
        self.0.budgets.check(caller, today).map_err(|used_up| Error::OverBudget { used_up, left: today.left })
    }
}

impl Shared {
    /// Logs that no provider serves a recommended model: the first time as a warning, later at debug level.
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

/// The current day.
pub(super) fn today() -> Today {
    Today::at(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Truncates caller input for an error message.
fn clip(text: &str) -> String {
    text.chars().take(128).collect()
}

//! Router: selects a model for each prompt and fails over to the next candidate.

mod answer;
mod embed;
mod failover;
mod plan;
mod signals;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::registry::Registry;
use tracing::Instrument;

use super::budget::{BudgetDay, Budgets};
use super::classifier::PromptClassifier;
use super::decision_log::DecisionLog;
use super::decision_record::DecisionRecord;
use super::error::Error;
use super::grounding::DocumentAccess;
use super::metrics::Metrics;
use super::model_selector::{AUTO, NamedPolicy};
use super::response_mode::{BufferedMode, PassthroughMode, StreamingMode};
use super::routed_request::RoutedRequest;
use super::stream::RoutedStream;
use corbie_classify::external_classifier::ExternalClassifier;
use corbie_config::router as config;
use corbie_knowledge::Knowledge;
use corbie_llm::registry::ProviderRegistry;
use corbie_llm::{self as providers, ChatRequest, ChatResponse, Completion};
use corbie_util::lock::lock;

pub use embed::RoutedEmbeddings;
pub use plan::{Plan, ResolvedCandidate};

/// The router of this process. Cheap to clone; all clones share their state.
#[derive(Debug, Clone)]
pub struct Router(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    settings: config::Router,
    threshold: f32,
    classifier: PromptClassifier,
    providers: ProviderRegistry,
    pub(super) decision_log: DecisionLog,
    pub(super) metrics: Metrics,
    pub(super) budgets: Budgets,
    policies: BTreeMap<String, NamedPolicy>,
    /// Recommended models without a provider that were already logged.
    reported_unserved: Mutex<Vec<String>>,
    /// The knowledge base, for grounding and as the database that instances share.
    knowledge: OnceLock<Knowledge>,
}

/// A request to the router.
#[derive(Debug, Clone, Default)]
pub struct RouteRequest {
    pub request: ChatRequest,
    /// The model the caller names, with or without a provider prefix.
    pub model: Option<String>,
    /// The caller who is charged. `None` on the command line.
    pub caller: Option<Arc<str>>,
    /// How the knowledge base is used for the prompt.
    pub documents: DocumentAccess,
}

/// A response with its decision record.
#[derive(Debug, Clone)]
pub struct RoutedCompletion {
    pub completion: Completion,
    pub record: DecisionRecord,
}

/// Bounds the list of logged models.
const MAX_REPORTED_MODELS: usize = 64;

impl Router {
    pub fn new(
        settings: config::Router,
        threshold: f32,
        classifier: PromptClassifier,
        pool: ProviderRegistry,
    ) -> Router {
        Router(Arc::new(Inner {
            decision_log: DecisionLog::new(settings.max_decisions),
            budgets: Budgets::new(settings.budget),
            policies: settings
                .policies
                .iter()
                .map(|(name, policy)| (name.clone(), NamedPolicy::new(policy, &settings)))
                .collect(),
            settings,
            threshold,
            classifier,
            providers: pool,
            metrics: Metrics::default(),
            reported_unserved: Mutex::default(),
            knowledge: OnceLock::new(),
        }))
    }

    pub fn providers(&self) -> &ProviderRegistry {
        &self.0.providers
    }

    /// The external classifier, if one is configured.
    pub fn external_classifier(&self) -> Option<&ExternalClassifier> {
        self.0.classifier.external()
    }

    pub fn decision_log(&self) -> &DecisionLog {
        &self.0.decision_log
    }

    pub fn settings(&self) -> &config::Router {
        &self.0.settings
    }

    /// The knowledge base, if it is enabled.
    pub(super) fn knowledge(&self) -> Option<&Knowledge> {
        self.0.knowledge.get()
    }

    /// The names that select a model automatically: `auto` and `auto:POLICY`.
    pub fn auto_models(&self) -> impl Iterator<Item = String> {
        std::iter::once(AUTO.to_owned()).chain(self.0.policies.keys().map(|name| format!("{AUTO}:{name}")))
    }

    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
        providers::metrics::register(&self.0.providers, registry);
    }

    /// Returns a buffered response.
    pub async fn complete(&self, mut ask: RouteRequest) -> Result<RoutedCompletion, Error> {
        let mut journey = self.begin(ask.model.as_deref(), ask.caller.clone());
        ask.request.set_streaming(false);
        let span = journey.span();
        match self.answer::<BufferedMode>(ask, &mut journey).instrument(span).await {
            Ok((completion, price)) => {
                let record = journey.succeed(completion.usage, price);
                Ok(RoutedCompletion { completion, record })
            }
            Err(error) => Err(journey.fail(error)),
        }
    }

    /// Returns a buffered response in OpenAI's format, passed through if the provider uses that format.
    pub async fn passthrough(&self, ask: RouteRequest) -> Result<(ChatResponse, DecisionRecord), Error> {
        let mut journey = self.begin(ask.model.as_deref(), ask.caller.clone());
        let span = journey.span();
        match self.answer::<PassthroughMode>(ask, &mut journey).instrument(span).await {
            Ok((answered, price)) => {
                let record = journey.succeed(answered.usage(), price);
                Ok((answered, record))
            }
            Err(error) => Err(journey.fail(error)),
        }
    }

    /// Returns a streaming response. After the first event, a failure is reported in the stream.
    pub async fn stream(&self, mut ask: RouteRequest) -> Result<RoutedStream, Error> {
        let mut journey = self.begin(ask.model.as_deref(), ask.caller.clone());
        ask.request.set_streaming(true);
        // A token has about four characters.
        let read = ask.request.size() as u64 / 4;
        let span = journey.span();
        match self.answer::<StreamingMode>(ask, &mut journey).instrument(span).await {
            Ok((stream, price)) => {
                Ok(RoutedStream::new(stream, journey, price, read, self.0.settings.stream_timeout.get()))
            }
            Err(error) => Err(journey.fail(error)),
        }
    }

    /// Records a response from the cache.
    pub fn record_cached(&self, asked: Option<&str>, caller: Arc<str>, provider: &str, model: &str) -> DecisionRecord {
        self.begin(asked, Some(caller)).finish_from_cache(provider, model)
    }

    fn begin(&self, asked: Option<&str>, caller: Option<Arc<str>>) -> RoutedRequest {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = DecisionRecord {
            id: self.0.decision_log.next_id(),
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            requested_model: asked.filter(|model| *model != AUTO).map(truncate_chars),
            caller: caller.clone(),
            ..DecisionRecord::default()
        };
        RoutedRequest::begin(self.0.clone(), record, caller)
    }

    /// Whether a caller is within budget.
    fn check_budget(&self, caller: &str) -> Result<(), Error> {
        let today = today();
        self.0.budgets.check(caller, today).map_err(|used_up| Error::OverBudget { used_up, left: today.remaining })
    }
}

impl Inner {
    /// Logs that no provider serves a recommended model: the first time as a warning, later at debug level.
    pub(super) fn warn_once(&self, model: &str, instead: Option<&String>) {
        let mut told = lock(&self.reported_unserved);
        let known = told.iter().any(|known| known == model);
        if !known && told.len() < MAX_REPORTED_MODELS {
            told.push(model.to_owned());
            tracing::warn!(model, fallback = instead, "no provider serves the recommended model");
        } else {
            tracing::debug!(model, fallback = instead, "no provider serves the recommended model");
        }
    }
}

/// The current day.
pub(super) fn today() -> BudgetDay {
    BudgetDay::at(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Truncates caller input for an error message.
fn truncate_chars(text: &str) -> String {
    text.chars().take(128).collect()
}

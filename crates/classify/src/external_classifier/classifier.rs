//! Client of an external classification server, with retries, circuit breaker and reconnection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::snapshot::ServerSnapshot;
use super::verdict::InvalidPrediction;
use super::{Categories, Error, ExternalPrediction, Settings, State};
use corbie_llm::circuit_breaker::CircuitBreaker;
use corbie_llm::http_client::HttpClient;
use corbie_util::backoff::Backoff;

/// An external classification server. Cheap to clone; clones share the connection and caches.
#[derive(Clone)]
pub struct ExternalClassifier(Arc<Inner>);

struct Inner {
    settings: Settings,
    client: HttpClient,
    /// `None` before the first connection and after the connection was lost.
    snapshot: ArcSwapOption<ServerSnapshot>,
    /// Held while connecting or listing categories, so that concurrent prompts do it once.
    listing: Mutex<()>,
    circuit_breaker: CircuitBreaker,
    state: watch::Sender<State>,
}

/// Consecutive failures that open the circuit breaker, so that prompts do not wait for the timeout.
const FAILURE_THRESHOLD: u32 = 3;
/// How long the circuit stays open. Then one call probes the server.
const OPEN_DURATION: Duration = Duration::from_secs(10);
/// Short, because a prompt is waiting. The deadline of the call bounds it.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::MAX);

impl ExternalClassifier {
    /// Sends nothing before the first call or before [`ExternalClassifier::run`].
    pub fn new(settings: Settings, client: HttpClient) -> ExternalClassifier {
        ExternalClassifier(Arc::new(Inner {
            settings,
            client,
            snapshot: ArcSwapOption::empty(),
            listing: Mutex::new(()),
            circuit_breaker: CircuitBreaker::new(FAILURE_THRESHOLD, OPEN_DURATION),
            state: watch::Sender::new(State::Starting),
        }))
    }

    /// The server's verdict on a text. On an error, the caller uses another classifier.
    pub async fn classify(&self, text: &str) -> Result<Arc<ExternalPrediction>, Error> {
        let shared = &*self.0;
        match shared.cached_snapshot().and_then(|known| known.cached(text)) {
            Some(seen) => Ok(seen),
            None => shared.call_with_retry(|| shared.classify(text)).await,
        }
    }

    /// The categories of the server.
    pub async fn categories(&self) -> Result<Arc<Categories>, Error> {
        let shared = &*self.0;
        let known = match shared.cached_snapshot() {
            Some(known) => known,
            None => shared.call_with_retry(|| shared.refresh_categories()).await?,
        };
        Ok(known.categories.clone())
    }

    /// Whether the server is usable.
    pub fn state(&self) -> State {
        self.0.state.borrow().clone()
    }

    /// Subscribes to state changes.
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }

    /// Connects to the server, refreshes its categories periodically, and reconnects while it is down. Never returns;
    /// drop the future to stop.
    pub async fn run(self) {
        let shared = &*self.0;
        let mut state = shared.state.subscribe();
        loop {
            // The result is in the state.
            let _ = shared.call_with_retry(|| shared.refresh_categories()).await;
            let interval = shared.settings.refresh_interval;
            let went_down = state.wait_for(|state| !state.is_ready());
            if shared.settings.cache_categories && !interval.is_zero() {
                let _ = tokio::time::timeout(interval, went_down).await;
            } else {
                let _ = went_down.await;
            }
            if !self.state().is_ready() {
                sleep(OPEN_DURATION).await;
            }
        }
    }
}

impl Inner {
    /// Retries until an answer, an error that is not retryable, or twice the timeout.
    async fn call_with_retry<T, F>(&self, question: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let Some(turn) = self.circuit_breaker.try_acquire(Instant::now().into_std()) else {
            return Err(Error::CircuitOpen);
        };
        let deadline = Instant::now() + 2 * self.settings.timeout;
        let mut backoff = RETRY_BACKOFF;
        for retries_left in (0..=self.settings.max_retries).rev() {
            let answer = timeout_at(deadline, question()).await.unwrap_or(Err(Error::Timeout));
            if let Err(error) = &answer {
                self.invalidate(error);
            }
            // Without a connection, every failure counts against the server.
            let failed = answer.as_ref().is_err_and(|error| error.is_server_fault() || self.snapshot.load().is_none());
            let is_retried = answer.as_ref().is_err_and(Error::is_retryable)
                && retries_left > 0
                && Instant::now() + backoff.peek() < deadline;
            // All attempts with a text on which the server fails count once, or a single text would open the circuit.
            if !(is_retried && answer.as_ref().is_err_and(Error::is_server_failure)) {
                turn.record_result(failed, Instant::now().into_std());
            }
            match answer {
                Err(_) if is_retried => sleep(backoff.next_delay()).await,
                Err(error) => {
                    if failed {
                        self.record_failure(&error);
                    }
                    return Err(error);
                }
                Ok(answer) => return Ok(answer),
            }
        }
        Err(Error::Timeout)
    }

    async fn classify(&self, text: &str) -> Result<Arc<ExternalPrediction>, Error> {
        let mut known = match self.cached_snapshot() {
            Some(known) => known,
            None => self.refresh_categories().await?,
        };
        let arguments = Map::from_iter([("text".to_owned(), Value::from(text))]);
        let answer = known.connection.call(&self.settings.classify_tool, arguments).await?;
        let verdict = match ExternalPrediction::read(&answer, &known.categories) {
            Err(InvalidPrediction::CategoryMismatch(_)) => {
                known = self.refresh_categories().await?;
                ExternalPrediction::read(&answer, &known.categories)?
            }
            verdict => verdict?,
        };
        let verdict = Arc::new(verdict);
        known.cache(text, &verdict);
        self.record_success(&known);
        Ok(verdict)
    }

    /// The cached connection and categories, if caching is enabled.
    fn cached_snapshot(&self) -> Option<Arc<ServerSnapshot>> {
        self.snapshot.load_full().filter(|_| self.settings.cache_categories)
    }

    /// Lists the categories, connecting first if there is no connection.
    async fn refresh_categories(&self) -> Result<Arc<ServerSnapshot>, Error> {
        let before = self.snapshot.load_full();
        let _one = self.listing.lock().await;
        let known = match self.snapshot.load_full() {
            // Another task listed them while we waited for the lock.
            Some(known) if before.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &known)) => return Ok(known),
            Some(known) => ServerSnapshot::with_fresh_categories(&self.settings, known.connection.clone()).await?,
            None => ServerSnapshot::connect(&self.settings, &self.client).await?,
        };
        let known = Arc::new(known);
        self.snapshot.store(Some(known.clone()));
        self.record_success(&known);
        Ok(known)
    }

    fn record_success(&self, known: &ServerSnapshot) {
        let categories = known.categories.names().len();
        self.state.send_if_modified(|state| state.transition_to(State::Ready { categories }));
    }

    /// Drops the cached state: after a lost connection the server may be a different one, and a server with an
    /// unexpected number of categories must not be used. Both cases reconnect.
    fn invalidate(&self, error: &Error) {
        if matches!(error, Error::Unreachable(_) | Error::CategoryCountMismatch { .. }) {
            self.snapshot.store(None);
        }
    }

    /// A single failure does not change the state while a connection exists and the circuit is closed. When the circuit
    /// opens, the connection is dropped too, because a new one may work where the old one hangs.
    fn record_failure(&self, error: &Error) {
        if self.snapshot.load().is_none() || self.circuit_breaker.is_open(Instant::now().into_std()) {
            self.snapshot.store(None);
            self.state.send_if_modified(|state| state.transition_to(State::Down(error.clone())));
        }
    }
}

impl fmt::Debug for ExternalClassifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RemoteClassifier").field("state", &self.state()).finish_non_exhaustive()
    }
}

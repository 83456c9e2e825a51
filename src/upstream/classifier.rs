//! Client of an external classification server, with retries, circuit breaker and reconnection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::known::Known;
use super::verdict::Flaw;
use super::{Categories, Error, RemoteVerdict, Settings, State};
use crate::providers::breaker::Breaker;
use crate::providers::client::Client;

/// An external classification server. Cheap to clone; clones share the connection and caches.
#[derive(Clone)]
pub struct RemoteClassifier(Arc<Shared>);

struct Shared {
    settings: Settings,
    client: Client,
    /// `None` before the first connection and after the connection was lost.
    known: ArcSwapOption<Known>,
    /// Held while connecting or listing categories, so that concurrent prompts do it once.
    listing: Mutex<()>,
    breaker: Breaker,
    state: watch::Sender<State>,
}

/// Consecutive failures that open the circuit breaker, so that prompts do not wait for the timeout.
const FAILURES: u32 = 3;
/// How long the circuit stays open. Then one call probes the server.
const REST: Duration = Duration::from_secs(10);
/// Backoff before the first retry; it doubles. Short, because a prompt is waiting.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

impl RemoteClassifier {
    /// Sends nothing before the first call or before [`RemoteClassifier::follow`].
    pub fn new(settings: Settings, client: Client) -> RemoteClassifier {
        RemoteClassifier(Arc::new(Shared {
            settings,
            client,
            known: ArcSwapOption::empty(),
            listing: Mutex::new(()),
            breaker: Breaker::new(FAILURES, REST),
            state: watch::Sender::new(State::Starting),
        }))
    }

    /// The server's verdict on a text. On an error, the caller uses another classifier.
    pub async fn classify(&self, text: &str) -> Result<Arc<RemoteVerdict>, Error> {
        let shared = &*self.0;
        match shared.remembered().and_then(|known| known.seen(text)) {
            Some(seen) => Ok(seen),
            None => shared.ask(|| shared.classify(text)).await,
        }
    }

    /// The categories of the server.
    pub async fn categories(&self) -> Result<Arc<Categories>, Error> {
        let shared = &*self.0;
        let known = match shared.remembered() {
            Some(known) => known,
            None => shared.ask(|| shared.list_again()).await?,
        };
        Ok(known.categories.clone())
    }

    /// Whether the server is usable.
    pub fn state(&self) -> State {
        self.0.state.borrow().clone()
    }

    /// Subscribes to state changes.
    pub fn changes(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }

    /// Connects to the server, refreshes its categories periodically, and reconnects while it is down. Never returns;
    /// drop the future to stop.
    pub async fn follow(self) {
        let shared = &*self.0;
        let mut state = shared.state.subscribe();
        loop {
            // The result is in the state.
            let _ = shared.ask(|| shared.list_again()).await;
            let interval = shared.settings.refresh_interval;
            let went_down = state.wait_for(|state| !state.is_ready());
            if shared.settings.cache_categories && !interval.is_zero() {
                let _ = tokio::time::timeout(interval, went_down).await;
            } else {
                let _ = went_down.await;
            }
            if !self.state().is_ready() {
                sleep(REST).await;
            }
        }
    }
}

impl Shared {
    /// Retries until an answer, an error that is not retryable, or twice the timeout.
    async fn ask<T, F>(&self, question: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let Some(turn) = self.breaker.turn(Instant::now().into_std()) else {
            return Err(Error::Resting);
        };
        let deadline = Instant::now() + 2 * self.settings.timeout;
        let mut pause = FIRST_PAUSE;
        for retries_left in (0..=self.settings.max_retries).rev() {
            let answer = timeout_at(deadline, question()).await.unwrap_or(Err(Error::Timeout));
            if let Err(error) = &answer {
                self.lost(error);
            }
            // Without a connection, every failure counts against the server.
            let failed = answer.as_ref().is_err_and(|error| error.is_the_servers() || self.known.load().is_none());
            turn.count(failed, Instant::now().into_std());
            match answer {
                Err(error) if error.retryable() && retries_left > 0 && Instant::now() + pause < deadline => {
                    sleep(pause).await;
                    pause *= 2;
                }
                Err(error) => {
                    if failed {
                        self.note_failure(&error);
                    }
                    return Err(error);
                }
                Ok(answer) => return Ok(answer),
            }
        }
        Err(Error::Timeout)
    }

    async fn classify(&self, text: &str) -> Result<Arc<RemoteVerdict>, Error> {
        let mut known = match self.remembered() {
            Some(known) => known,
            None => self.list_again().await?,
        };
        let arguments = Map::from_iter([("text".to_owned(), Value::from(text))]);
        let answer = known.connection.call(&self.settings.classify_tool, arguments).await?;
        let verdict = match RemoteVerdict::read(&answer, &known.categories) {
            Err(Flaw::OtherList(_)) => {
                known = self.list_again().await?;
                RemoteVerdict::read(&answer, &known.categories)?
            }
            verdict => verdict?,
        };
        let verdict = Arc::new(verdict);
        known.keep(text, &verdict);
        self.note_success(&known);
        Ok(verdict)
    }

    /// The cached connection and categories, if caching is enabled.
    fn remembered(&self) -> Option<Arc<Known>> {
        self.known.load_full().filter(|_| self.settings.cache_categories)
    }

    /// Lists the categories, connecting first if there is no connection.
    async fn list_again(&self) -> Result<Arc<Known>, Error> {
        let before = self.known.load_full();
        let _one = self.listing.lock().await;
        let known = match self.known.load_full() {
            // Another task listed them while we waited for the lock.
            Some(known) if before.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &known)) => return Ok(known),
            Some(known) => Known::list(&self.settings, known.connection.clone()).await?,
            None => Known::start(&self.settings, &self.client).await?,
        };
        let known = Arc::new(known);
        self.known.store(Some(known.clone()));
        self.note_success(&known);
        Ok(known)
    }

    fn note_success(&self, known: &Known) {
        let categories = known.categories.names().len();
        self.state.send_if_modified(|state| state.change_to(State::Ready { categories }));
    }

    /// Drops the cached state: after a lost connection the server may be a different one, and a server with an
    /// unexpected number of categories must not be used. Both cases reconnect.
    fn lost(&self, error: &Error) {
        if matches!(error, Error::Unreachable(_) | Error::WrongCount { .. }) {
            self.known.store(None);
        }
    }

    /// A single failure does not change the state while a connection exists and the circuit is closed. When the circuit
    /// opens, the connection is dropped too, because a new one may work where the old one hangs.
    fn note_failure(&self, error: &Error) {
        if self.known.load().is_none() || self.breaker.is_resting(Instant::now().into_std()) {
            self.known.store(None);
            self.state.send_if_modified(|state| state.change_to(State::Down(error.clone())));
        }
    }
}

impl fmt::Debug for RemoteClassifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RemoteClassifier").field("state", &self.state()).finish_non_exhaustive()
    }
}

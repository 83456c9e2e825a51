//! One provider call with retries, within one deadline.

use std::sync::Arc;
use std::time::{Duration, Instant as Clock, SystemTime};

use bytes::Bytes;
use tokio::time::Instant;

use super::embeddings::{self, EmbeddingRequest, EmbeddingResponse};
use super::http_client::BufferedResponse;
use super::provider::Provider;
use super::spans::{self, Operation, RecordAttributes};
use super::stream::ChatStream;
use super::{ChatRequest, ChatResponse, Completion, Error, ModelInfo, ResponseHead, mock, retry};

/// Result of a call, and how many attempts it took.
#[derive(Debug)]
pub struct CallOutcome<T> {
    pub result: Result<T, Error>,
    /// Requests sent.
    pub attempts: usize,
}

/// Failover options that remain if a call fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct FailoverOptions {
    /// Another key of the same provider.
    pub another_key: bool,
    /// Another key, provider or model.
    pub another_target: bool,
}

/// Maximum number of model list pages to read; providers have three or four.
const MAX_PAGES: usize = 50;

/// A request and the provider that serves it.
#[derive(Debug, Clone, Copy)]
pub struct ProviderCall<'a> {
    pub provider: &'a Arc<Provider>,
    /// Index of the key.
    pub key: usize,
    pub request: &'a ChatRequest,
    pub deadline: Instant,
    pub failover: FailoverOptions,
}

impl ProviderCall<'_> {
    /// Requests a buffered response.
    pub async fn complete(self) -> CallOutcome<Completion> {
        self.buffered(|head, body| self.provider.response(head, &body, self.request.model()), |completion| completion)
            .await
    }

    /// Requests a buffered response, passed through unmodified where possible.
    pub async fn passthrough(self) -> CallOutcome<ChatResponse> {
        self.buffered(
            |head, body| self.provider.passthrough_response(head, body, self.request.model()),
            ChatResponse::Parsed,
        )
        .await
    }

    /// Requests a streaming response and waits for its first content. Until then a retry or failover loses nothing.
    pub async fn open_stream(self) -> CallOutcome<ChatStream> {
        let ProviderCall { provider, key, request: question, deadline, failover: hope } = self;
        let open = || ChatStream::open(provider, key, question, attempt_deadline(provider, deadline));
        let once = || spans::run_attempt(provider, Operation::Chat, question.model(), open());
        with_retries(provider, question.model(), once, deadline, hope).await
    }

    async fn buffered<T: RecordAttributes>(
        self,
        read: impl Fn(ResponseHead<'_>, Bytes) -> Result<T, Error>,
        of_mock: impl Fn(Completion) -> T,
    ) -> CallOutcome<T> {
        let ProviderCall { provider, key, request: question, deadline, failover: hope } = self;
        let ask = || async {
            match provider.request(key, question)? {
                None => mock::complete(&*question.chat()?).map(&of_mock),
                Some(request) => {
                    let BufferedResponse { status, headers, body } =
                        provider.client.send(request, attempt_deadline(provider, deadline)).await?;
                    read(ResponseHead { status, headers: &headers, received_at: SystemTime::now() }, body)
                }
            }
        };
        let once = || spans::run_attempt(provider, Operation::Chat, question.model(), ask());
        with_retries(provider, question.model(), once, deadline, hope).await
    }
}

/// Requests embeddings.
pub async fn embed(
    provider: &Provider,
    key: usize,
    embed: &EmbeddingRequest,
    deadline: Instant,
    hope: FailoverOptions,
) -> CallOutcome<EmbeddingResponse> {
    let ask = || async {
        let by = attempt_deadline(provider, deadline);
        let mut batches = Vec::new();
        for request in provider.embed_requests(key, embed)? {
            let BufferedResponse { status, headers, body } = provider.client.send(request, by).await?;
            let head = ResponseHead { status, headers: &headers, received_at: SystemTime::now() };
            batches.push(provider.embed_response(head, &body)?);
        }
        embeddings::merge_batches(embed, batches)
    };
    let once = || spans::run_attempt(provider, Operation::Embeddings, &embed.model, ask());
    with_retries(provider, &embed.model, once, deadline, hope).await
}

/// Lists all models of a provider.
pub async fn list_models(provider: &Provider, deadline: Instant) -> Result<Vec<ModelInfo>, Error> {
    let mut models = Vec::new();
    let mut page: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let Some(request) = provider.models_request(page.as_deref()) else { return Ok(provider.models().to_vec()) };
        let BufferedResponse { status, headers, body } =
            provider.client.send(request, attempt_deadline(provider, deadline)).await?;
        let head = ResponseHead { status, headers: &headers, received_at: SystemTime::now() };
        let (found, next) = provider.models_response(head, &body).map_err(|error| match error {
            Error::ModelNotFound => Error::InvalidResponse("no model list at this URL"),
            error => error,
        })?;
        models.extend(found);
        page = next;
        if page.is_none() {
            break;
        }
    }
    Ok(models)
}

impl FailoverOptions {
    /// Whether failover beats a retry: this key is rate limited and another key exists, or the provider used up its
    /// full timeout.
    fn prefers_failover(self, error: &Error, took: Duration, provider: &Provider) -> bool {
        match error {
            Error::RateLimited { .. } => self.another_key,
            Error::Timeout => self.another_target && took >= provider.timeout,
            _ => false,
        }
    }
}

/// Deadline of one attempt.
fn attempt_deadline(provider: &Provider, deadline: Instant) -> Instant {
    deadline.min(Instant::now() + provider.timeout)
}

/// Retries until the call succeeds, the error is permanent, or the deadline leaves no time.
async fn with_retries<T, Once: Future<Output = Result<T, Error>>>(
    provider: &Provider,
    model: &str,
    once: impl Fn() -> Once,
    deadline: Instant,
    hope: FailoverOptions,
) -> CallOutcome<T> {
    let mut attempts = 0;
    loop {
        // If the call is dropped, the permit frees the half-open slot: a cancelled call proves nothing about the
        // provider.
        let Some(turn) = provider.circuit_breaker.try_acquire(Clock::now()) else {
            return CallOutcome { result: Err(Error::CircuitOpen), attempts };
        };
        attempts += 1;
        let started = Instant::now();
        let result = once().await;
        let left = deadline.saturating_duration_since(Instant::now());
        // A timeout caused by our own deadline proves nothing about the provider.
        if !(left.is_zero() && matches!(result, Err(Error::Timeout))) {
            provider.record_call(model, result.as_ref().map(drop), started.elapsed());
        }
        drop(turn);
        let again = result.as_ref().err().filter(|error| !hope.prefers_failover(error, started.elapsed(), provider));
        match again.and_then(|error| retry::backoff(error, attempts - 1, left)) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return CallOutcome { result, attempts },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkError;
    use crate::http_client::HttpClient;
    use corbie_config::providers as config;
    use std::cell::RefCell;
    use std::time::Duration;

    fn provider() -> Provider {
        let settings = config::Provider { kind: Some(config::ProviderKind::Mock), ..config::Provider::default() };
        Provider::new("somebody", &settings, &HttpClient::default()).unwrap()
    }

    /// Plays back failures, then succeeds. Returns the outcome and the seconds at which requests were sent.
    async fn play(failures: Vec<Error>, limit: Duration) -> (CallOutcome<u16>, Vec<u64>) {
        let (provider, start) = (provider(), Instant::now());
        let failures = RefCell::new(failures.into_iter());
        let sent = RefCell::new(Vec::new());
        let once = || async {
            sent.borrow_mut().push(start.elapsed().as_secs());
            failures.borrow_mut().next().map_or(Ok(200), Err)
        };
        let outcome = with_retries(&provider, "model", once, start + limit, FailoverOptions::default()).await;
        (outcome, sent.into_inner())
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn p14_v07_retries_come_after_one_two_and_four_seconds() {
        let (outcome, sent) = play(vec![Error::Timeout; 9], MINUTE).await;
        assert_eq!((outcome.result, outcome.attempts), (Err(Error::Timeout), 4));
        assert_eq!(sent, [0, 1, 3, 7]);
        let (outcome, sent) = play(vec![Error::Network(NetworkError::Refused)], MINUTE).await;
        assert_eq!((outcome.result, sent), (Ok(200), vec![0, 1]));
    }

    #[tokio::test(start_paused = true)]
    async fn p15_what_cannot_pass_is_told_at_once() {
        for error in
            [Error::Authentication, Error::ModelNotFound, Error::Unavailable { status: 500, retry_after: None }]
        {
            let (outcome, sent) = play(vec![error.clone(); 9], MINUTE).await;
            assert_eq!((outcome.result, sent), (Err(error), vec![0]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p18_the_deadline_covers_all_tries() {
        let (outcome, sent) = play(vec![Error::Timeout; 9], Duration::from_millis(3500)).await;
        assert_eq!((outcome.result, sent), (Err(Error::Timeout), vec![0, 1, 3]));
    }

    #[tokio::test(start_paused = true)]
    async fn p17_a_provider_that_rests_is_not_asked_and_a_caller_who_gives_up_changes_nothing() {
        let provider = provider();
        let failing = || async { Err::<(), _>(Error::Unavailable { status: 500, retry_after: None }) };
        for _ in 0..5 {
            with_retries(&provider, "model", failing, Instant::now() + MINUTE, FailoverOptions::default()).await;
        }
        let outcome =
            with_retries(&provider, "model", failing, Instant::now() + MINUTE, FailoverOptions::default()).await;
        assert_eq!((outcome.result, outcome.attempts), (Err(Error::CircuitOpen), 0));

        let provider = self::provider();
        let endless = std::future::pending::<Result<(), Error>>;
        let call = with_retries(&provider, "model", endless, Instant::now() + MINUTE, FailoverOptions::default());
        assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
        assert!(provider.circuit_breaker.try_acquire(Clock::now()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn p14_a_key_that_has_to_wait_makes_way_for_the_next() {
        let provider = provider();
        let limited = || async { Err::<(), _>(Error::RateLimited { retry_after: None, quota: false }) };
        for (hope, requests) in [
            (FailoverOptions { another_key: true, another_target: true }, 1),
            (FailoverOptions { another_key: false, another_target: true }, 4),
        ] {
            let outcome = with_retries(&provider, "model", limited, Instant::now() + MINUTE, hope).await;
            assert_eq!(outcome.attempts, requests);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p17_a_provider_that_hangs_is_left_for_the_next_and_not_asked_again() {
        let provider = provider();
        let hangs = || async {
            tokio::time::sleep(provider.timeout).await;
            Err::<(), _>(Error::Timeout)
        };
        let hope = FailoverOptions { another_key: false, another_target: true };
        assert_eq!(with_retries(&provider, "model", hangs, Instant::now() + 9 * MINUTE, hope).await.attempts, 1);
        let alone =
            with_retries(&provider, "model", hangs, Instant::now() + 9 * MINUTE, FailoverOptions::default()).await;
        assert_eq!(alone.attempts, 4);
    }
}

//! One answer of one provider: asked, and asked again where that may help, within one deadline.

use std::time::{Instant as Clock, SystemTime};

use http::HeaderMap;
use http::StatusCode;
use tokio::time::Instant;

use super::client::{Answer, Client};
use super::provider::Provider;
use super::{Chat, Completion, Error, Head, ModelInfo, Refuses, Request, retry};

/// How a call went, whatever its end.
#[derive(Debug)]
pub struct Outcome<T> {
    pub result: Result<T, Error>,
    /// Requests that were sent.
    pub attempts: usize,
}

/// Pages of a list of models that are read; providers have three or four.
const MOST_PAGES: usize = 50;

/// Asks for a completion.
pub async fn complete(
    client: &Client,
    provider: &Provider,
    chat: &Chat,
    refuses: Refuses,
    deadline: Instant,
) -> Outcome<Completion> {
    let send = async |request| client.send(request, deadline).await;
    let read = |status: StatusCode, headers: &HeaderMap, body: &[u8]| {
        provider.response(Head { status, headers, at: SystemTime::now() }, body)
    };
    with_retries(provider, || provider.request(chat, refuses), send, read, deadline).await
}

/// Asks for all models.
pub async fn models(client: &Client, provider: &Provider, deadline: Instant) -> Result<Vec<ModelInfo>, Error> {
    let mut models = Vec::new();
    let mut page: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let Answer { status, headers, body } = client.send(provider.models_request(page.as_deref()), deadline).await?;
        let head = Head { status, headers: &headers, at: SystemTime::now() };
        let (found, next) = provider.models_response(head, &body)?;
        models.extend(found);
        page = next;
        if page.is_none() {
            break;
        }
    }
    Ok(models)
}

/// Sends until it succeeds, until trying again cannot help, or until the time is up.
async fn with_retries<T>(
    provider: &Provider,
    request: impl Fn() -> Request,
    send: impl AsyncFn(Request) -> Result<Answer, Error>,
    read: impl Fn(StatusCode, &HeaderMap, &[u8]) -> Result<T, Error>,
    deadline: Instant,
) -> Outcome<T> {
    let mut attempts = 0;
    loop {
        if !provider.breaker.allows(Clock::now()) {
            let result = Err(Error::Unavailable { status: 503, retry_after: None });
            return Outcome { result, attempts };
        }
        attempts += 1;
        let result = send(request()).await.and_then(|Answer { status, headers, body }| read(status, &headers, &body));
        provider.breaker.ended(result.as_ref().map(drop), Clock::now());
        let left = deadline.saturating_duration_since(Instant::now());
        match result.as_ref().err().and_then(|error| retry::wait(error, attempts - 1, left)) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Outcome { result, attempts },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::chat::Protocol;
    use crate::providers::{Endpoint, NetworkFault};
    use std::cell::RefCell;
    use std::time::Duration;

    fn provider() -> Provider {
        Provider {
            name: "openai".into(),
            protocol: Protocol::OpenAi,
            endpoint: Endpoint { base: "http://127.0.0.1:9/v1".parse().unwrap(), key: None, headers: HeaderMap::new() },
            breaker: Default::default(),
        }
    }

    /// Plays failures, then succeeds; gives the seconds at which requests were sent.
    async fn play(failures: Vec<Error>, limit: Duration) -> (Outcome<u16>, Vec<u64>) {
        let (provider, start) = (provider(), Instant::now());
        let failures = RefCell::new(failures.into_iter());
        let sent = RefCell::new(Vec::new());
        let send = async |_| {
            sent.borrow_mut().push(start.elapsed().as_secs());
            match failures.borrow_mut().next() {
                Some(error) => Err(error),
                None => Ok(Answer { status: StatusCode::OK, headers: HeaderMap::new(), body: Default::default() }),
            }
        };
        let request = || provider.request(&Chat::default(), Refuses::default());
        let outcome = with_retries(&provider, request, send, |status, _, _| Ok(status.as_u16()), start + limit).await;
        (outcome, sent.into_inner())
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn p14_v07_retries_come_after_one_two_and_four_seconds() {
        let (outcome, sent) = play(vec![Error::Timeout; 9], MINUTE).await;
        assert_eq!((outcome.result, outcome.attempts), (Err(Error::Timeout), 4));
        assert_eq!(sent, [0, 1, 3, 7]);
        let (outcome, sent) = play(vec![Error::Network(NetworkFault::Refused)], MINUTE).await;
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
}

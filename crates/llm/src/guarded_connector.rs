//! HTTP connector that enforces the egress policy.
//!
//! The policy checks every resolved address at connect time, so DNS rebinding does not bypass it.

use std::error::Error;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::Either;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use corbie_config::egress_policy::{EgressDenied, EgressPolicy};

/// TCP connector restricted by the egress policy.
#[derive(Debug, Clone)]
pub(crate) struct GuardedConnector {
    tcp: HttpConnector<FilteringResolver<GaiResolver>>,
    egress: EgressPolicy,
}

/// DNS resolver that drops addresses denied by the egress policy.
#[derive(Debug, Clone)]
pub(crate) struct FilteringResolver<Lookup> {
    lookup: Lookup,
    egress: EgressPolicy,
}

type BoxError = Box<dyn Error + Send + Sync>;
type ConnectFuture<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Checks a literal IP address, which does not go through the resolver.
pub(crate) fn check_host(destinations: &EgressPolicy, uri: &Uri) -> Result<(), EgressDenied> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().map_or(Ok(()), |address| destinations.check(address))
}

impl GuardedConnector {
    pub(crate) fn new(
        tcp: fn(FilteringResolver<GaiResolver>) -> HttpConnector<FilteringResolver<GaiResolver>>,
        destinations: EgressPolicy,
    ) -> GuardedConnector {
        let lookup = FilteringResolver { lookup: GaiResolver::new(), egress: destinations.clone() };
        GuardedConnector { tcp: tcp(lookup), egress: destinations }
    }
}

impl Service<Uri> for GuardedConnector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Either<ConnectFuture<Self::Response>, Ready<Result<Self::Response, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match check_host(&self.egress, &uri) {
            Ok(()) => Either::Left(self.tcp.call(uri).map(|connected| connected.map_err(Into::into)).boxed()),
            Err(forbidden) => Either::Right(ready(Err(forbidden.into()))),
        }
    }
}

impl<Lookup> Service<Name> for FilteringResolver<Lookup>
where
    Lookup: Service<Name, Response: Iterator<Item = SocketAddr>, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = ConnectFuture<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.lookup.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let destinations = self.egress.clone();
        let found = self.lookup.call(name);
        async move {
            let (mut permitted, mut forbidden) = (Vec::new(), None);
            for address in found.await.map_err(Into::into)? {
                match destinations.check(address.ip()) {
                    Ok(()) => permitted.push(address),
                    Err(reason) => forbidden = Some(reason),
                }
            }
            match forbidden {
                Some(reason) if permitted.is_empty() => Err(reason.into()),
                _ => Ok(permitted.into_iter()),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Returns a different answer on each lookup, as in a DNS rebinding attack.
    #[derive(Clone)]
    struct Changing {
        answers: Arc<[Vec<SocketAddr>]>,
        asked: Arc<AtomicUsize>,
    }

    impl Service<Name> for Changing {
        type Response = std::vec::IntoIter<SocketAddr>;
        type Error = std::io::Error;
        type Future = Ready<Result<Self::Response, std::io::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Name) -> Self::Future {
            let answer = self.answers[self.asked.fetch_add(1, Ordering::Relaxed)].clone();
            ready(Ok(answer.into_iter()))
        }
    }

    fn saying(answers: &[&[&str]]) -> FilteringResolver<Changing> {
        let addresses = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let answers = answers.iter().map(addresses).collect();
        FilteringResolver { lookup: Changing { answers, asked: Arc::default() }, egress: EgressPolicy::default() }
    }

    async fn look_up(lookup: &mut FilteringResolver<Changing>) -> Result<Vec<String>, BoxError> {
        let found = lookup.call("host.example".parse().unwrap()).await?;
        Ok(found.map(|address| address.to_string()).collect())
    }

    #[tokio::test]
    async fn p21_every_address_of_a_name_is_judged_and_the_good_ones_stay() {
        let mut lookup = saying(&[
            &["169.254.169.254:80", "127.0.0.1:80", "[fe80::1]:80", "[::1]:80"],
            &["169.254.169.254:80", "[::ffff:169.254.169.254]:80"],
            &[],
        ]);
        assert_eq!(look_up(&mut lookup).await.unwrap(), ["127.0.0.1:80", "[::1]:80"]);
        assert!(look_up(&mut lookup).await.unwrap_err().is::<EgressDenied>());
        assert_eq!(look_up(&mut lookup).await.unwrap(), [""; 0], "nothing was forbidden");
    }

    /// The connection goes to the checked address: the connector receives the resolved addresses and does not resolve
    /// again.
    #[tokio::test]
    async fn p21_a_name_that_turns_to_the_metadata_later_is_not_followed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lookup = saying(&[&["127.0.0.1:0"], &["0.0.0.0:0"]]);
        let mut tcp = HttpConnector::new_with_resolver(lookup);
        let uri: Uri = format!("http://host.example:{port}/").parse().unwrap();
        assert!(tcp.call(uri.clone()).await.is_ok());
        let error = tcp.call(uri).await.unwrap_err();
        assert!(error.source().is_some_and(|inner| inner.is::<EgressDenied>()), "{error:?}");
    }
}

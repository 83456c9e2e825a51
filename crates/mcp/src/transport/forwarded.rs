//! Client addresses from trusted proxies: `Forwarded` (RFC 7239) and `X-Forwarded-For`.
//!
//! The headers count only on connections of a proxy that the operator trusts. They are read from the right, where the
//! nearest proxy has added the address it saw, to the first address that is no trusted proxy: a client can write
//! anything further left.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};

/// Decides whether an address is a trusted proxy.
#[derive(Clone, Default)]
pub struct TrustedProxies(Option<Arc<dyn Fn(IpAddr) -> bool + Send + Sync>>);

/// The client of a request that a trusted proxy forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForwardedClient {
    From(IpAddr),
    /// The proxy sent no address, or two headers contradict each other.
    Unknown,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl TrustedProxies {
    pub fn new(trusts: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> TrustedProxies {
        TrustedProxies(Some(Arc::new(trusts)))
    }

    /// Whether forwarding headers count on connections from this address.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        self.0.as_ref().is_some_and(|trusts| trusts(peer.to_canonical()))
    }

    /// The client of a request on a connection of a trusted proxy; `None` if the proxy forwards nothing and calls for
    /// itself.
    pub(super) fn client(&self, headers: &HeaderMap) -> Option<ForwardedClient> {
        let listed = |name: &HeaderName| {
            let lines = headers.get_all(name).iter();
            lines.map(|line| line.to_str().unwrap_or_default()).collect::<Vec<_>>()
        };
        let (standard, common) = (listed(&FORWARDED), listed(&X_FORWARDED_FOR));
        let standard = (!standard.is_empty()).then(|| self.nearest(&standard, forwarded_for));
        let common = (!common.is_empty()).then(|| self.nearest(&common, address));
        match (standard, common) {
            // A proxy that sets one of them may pass on what the client wrote into the other.
            (Some(standard), Some(common)) if standard != common => Some(ForwardedClient::Unknown),
            (standard, common) => standard.or(common),
        }
    }

    /// The rightmost address that is no trusted proxy; the leftmost one if all are.
    fn nearest(&self, lines: &[&str], read: fn(&str) -> Option<IpAddr>) -> ForwardedClient {
        let mut nearest = ForwardedClient::Unknown;
        for element in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            let Some(address) = read(element.trim()) else { return ForwardedClient::Unknown };
            nearest = ForwardedClient::From(address);
            if !self.trusts(address) {
                break;
            }
        }
        nearest
    }
}

/// The `for` parameter of an element of `Forwarded`. Quoted commas and semicolons do not occur in addresses; an element
/// that has them is not understood.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut values = element.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
    });
    let value = values.next().filter(|_| values.next().is_none())?;
    match value.strip_prefix('"') {
        Some(quoted) => address(quoted.strip_suffix('"')?),
        None => address(value),
    }
}

/// An address, perhaps with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(with_port).or_else(bracketed).map(|address: IpAddr| address.to_canonical())
}

impl std::fmt::Debug for TrustedProxies {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.0.is_some() { "TrustedProxies(…)" } else { "TrustedProxies(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(headers: &[(&str, &str)]) -> Option<ForwardedClient> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"));
        }
        let trusted = |address: IpAddr| address.is_loopback() || address == IpAddr::from([10, 0, 0, 1]);
        TrustedProxies::new(trusted).client(&map)
    }

    fn from(text: &str) -> Option<ForwardedClient> {
        Some(ForwardedClient::From(text.parse().expect("an address")))
    }

    #[test]
    fn s09_the_rightmost_address_that_is_no_proxy_counts() {
        for (list, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("127.0.0.1, 203.0.113.7", "203.0.113.7"),
            ("198.51.100.1, 203.0.113.7, 10.0.0.1", "203.0.113.7"),
            ("203.0.113.7:4711", "203.0.113.7"),
            ("[2001:db8::1]:80", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("10.0.0.1, 127.0.0.1", "10.0.0.1"),
        ] {
            assert_eq!(client(&[("x-forwarded-for", list)]), from(expected), "{list}");
        }
        let two = [("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "10.0.0.1")];
        assert_eq!(client(&two), from("203.0.113.7"));
        assert_eq!(client(&[]), None);
    }

    #[test]
    fn s09_the_standard_header_is_read_too() {
        for (list, expected) in [
            ("for=203.0.113.7", "203.0.113.7"),
            ("For=198.51.100.1, for=203.0.113.7;proto=https;by=10.0.0.1", "203.0.113.7"),
            ("for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=203.0.113.7, for=127.0.0.1", "203.0.113.7"),
        ] {
            assert_eq!(client(&[("forwarded", list)]), from(expected), "{list}");
        }
    }

    #[test]
    fn s09_what_cannot_be_read_is_nobody_in_particular() {
        for (name, list) in [
            ("x-forwarded-for", ""),
            ("x-forwarded-for", "203.0.113.7, unknown"),
            ("x-forwarded-for", "203.0.113.7,"),
            ("x-forwarded-for", "localhost"),
            ("forwarded", "for=_hidden"),
            ("forwarded", "for=unknown"),
            ("forwarded", "proto=https"),
            ("forwarded", "for=1.2.3.4;for=5.6.7.8"),
            ("forwarded", "for=\"203.0.113.7"),
        ] {
            assert_eq!(client(&[(name, list)]), Some(ForwardedClient::Unknown), "{list}");
        }
        let both = |other| client(&[("x-forwarded-for", "203.0.113.7"), ("forwarded", other)]);
        assert_eq!(both("for=203.0.113.7"), from("203.0.113.7"));
        assert_eq!(both("for=198.51.100.1"), Some(ForwardedClient::Unknown));
    }

    #[test]
    fn s09_without_a_setting_nobody_is_trusted() {
        assert!(!TrustedProxies::default().trusts(IpAddr::from([127, 0, 0, 1])));
        let loopback = TrustedProxies::new(|address| address.is_loopback());
        assert!(loopback.trusts("::ffff:127.0.0.1".parse().expect("an address")));
    }
}

//! Protection against DNS rebinding and cross-origin requests: `Host` and `Origin` are parsed and compared exactly
//! (S-07).

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use url::{Host, Url};

/// Accepted host names and web origins.
#[derive(Debug, Clone, Default)]
pub(crate) struct OriginPolicy {
    /// Additional host names, without port; if empty and the listener is not on loopback, any name.
    pub(crate) hosts: Vec<String>,
    /// Additional origins, as `scheme://host[:port]`.
    pub(crate) origins: Vec<String>,
    pub(crate) loopback_listener: bool,
    /// A Unix socket has no host name, and no web page can reach it by one.
    pub(crate) any_host: bool,
    /// The listener uses TLS, so its own pages have `https` origins.
    pub(crate) encrypted: bool,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAllowed {
    /// It is not HTTP as it should be.
    Malformed(&'static str),
    /// It is for another host, or from a page that may not call.
    Foreign(&'static str),
}

impl OriginPolicy {
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), NotAllowed> {
        use NotAllowed::{Foreign, Malformed};
        // A proxy in front of us may use the last of several values where we use the first.
        if [HOST, ORIGIN].iter().any(|name| headers.get_all(name).iter().nth(1).is_some()) {
            return Err(Malformed("request has more than one `Host` or `Origin` header"));
        }
        match headers.get(HOST).map(|value| value.to_str()) {
            Some(Ok(host)) if !self.any_host && self.allows_host(host) => {}
            Some(Ok(host)) if is_well_formed(host) && (self.any_host || !host.is_empty()) => match self.any_host {
                true => {}
                false => return Err(Foreign("`Host` is not allowed; see `server.allowed_hosts`")),
            },
            Some(_) => return Err(Malformed("invalid `Host`; use a host name or address with an optional port")),
            None if self.any_host => {}
            None => return Err(Malformed("request has no `Host` header")),
        }
        match headers.get(ORIGIN).map(|value| value.to_str()) {
            None => Ok(()),
            Some(Ok(origin)) if self.allows_origin(origin) => Ok(()),
            Some(Ok(origin)) if self.is_own_page(origin, headers) => Ok(()),
            Some(_) => Err(Foreign("`Origin` is not allowed; see `server.allowed_origins`")),
        }
    }

    /// Whether a page comes from this server, under a configured host name. Without a configured name it could be any
    /// page that was rebound to this address. A different scheme does not match: a clear-text page could have been
    /// modified in transit, and a TLS page belongs to the proxy that terminated TLS.
    fn is_own_page(&self, origin: &str, headers: &HeaderMap) -> bool {
        let scheme = if self.encrypted { "https://" } else { "http://" };
        let Some(authority) = origin.strip_prefix(scheme) else { return false };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| host.eq_ignore_ascii_case(authority) && self.is_configured_host(host))
    }

    /// Checks the host of an absolute-form target, as in proxy requests: it counts like the header.
    pub(crate) fn check_target(&self, target: &http::Uri) -> Result<(), NotAllowed> {
        match target.authority() {
            Some(authority) if !self.allows_host(authority.as_str()) => {
                Err(NotAllowed::Foreign("host of the request target is not allowed; see `server.allowed_hosts`"))
            }
            _ => Ok(()),
        }
    }

    fn allows_host(&self, header: &str) -> bool {
        // Fast path for the usual values.
        if is_plainly_loopback(header) {
            return true;
        }
        parse_host(header).is_some_and(|(host, _)| is_loopback(&host))
            || self.is_configured_host(header)
            // Beyond loopback a token is mandatory, which a rebound page does not have.
            || (!self.loopback_listener && self.hosts.is_empty() && parse_host(header).is_some())
    }

    /// Whether the host is configured.
    fn is_configured_host(&self, header: &str) -> bool {
        let Some((host, port)) = parse_host(header) else { return false };
        let mut named = self.hosts.iter().filter_map(|allowed| parse_host(allowed));
        named.any(|(allowed, allowed_port)| allowed == host && (allowed_port.is_none() || allowed_port == port))
    }

    /// Compares scheme, host and port; a host that only starts with `localhost` does not match.
    pub(crate) fn allows_origin(&self, header: &str) -> bool {
        // Non-web origins, such as browser extensions, are compared as text.
        let same_text = |allowed: &String| allowed.trim_end_matches('/').eq_ignore_ascii_case(header);
        let Some(origin) = Url::parse(header).ok().filter(|_| !has_spaces(header)) else { return false };
        let is_web = matches!(origin.scheme(), "http" | "https");
        if !is_web {
            return self.origins.iter().any(same_text);
        }
        let loopback = origin.host().is_some_and(|host| is_loopback(&host.to_owned()));
        let same = |allowed: &String| Url::parse(allowed).is_ok_and(|allowed| allowed.origin() == origin.origin());
        loopback || self.origins.iter().any(same)
    }
}

/// `localhost`, `127.0.0.1` or `[::1]` with an optional port, in the usual spelling.
fn is_plainly_loopback(header: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]"].iter().filter_map(|host| header.strip_prefix(host)).any(|rest| match rest {
        "" => true,
        rest => rest
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()),
    })
}

/// Whether a `Host` has the syntax of RFC 9110, section 7.2: a registered name or an address, perhaps with a port.
fn is_well_formed(header: &str) -> bool {
    let (is_host, port) = match header.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => (address.parse::<std::net::Ipv6Addr>().is_ok(), port),
            None => return false,
        },
        None => {
            let (host, port) = header.split_at(header.find(':').unwrap_or(header.len()));
            let mut rest = host.as_bytes();
            let mut is_name = true;
            while let Some((first, tail)) = rest.split_first() {
                rest = match (first, tail) {
                    (b'%', [a, b, tail @ ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => tail,
                    (byte, tail) if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) => tail,
                    _ => {
                        is_name = false;
                        break;
                    }
                };
            }
            (is_name, port)
        }
    };
    let is_port = match port.strip_prefix(':') {
        Some("") => true,
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok(),
        None => port.is_empty(),
    };
    is_host && is_port
}

/// Parses `host[:port]`.
fn parse_host(header: &str) -> Option<(Host, Option<u16>)> {
    // A URL parser would also accept user names, paths and fragments as part of an authority.
    if header.is_empty() || header.contains(['/', '@', '?', '#', '\\']) || has_spaces(header) {
        return None;
    }
    let url = Url::parse(&format!("http://{header}/")).ok()?;
    Some((url.host()?.to_owned(), url.port()))
}

/// Whether a URL parser would drop a part of this header: it removes tabs, and spaces at both ends.
fn has_spaces(header: &str) -> bool {
    header.bytes().any(|byte| byte <= b' ' || byte == 0x7f)
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => IpAddr::V4(*address).is_loopback(),
        Host::Ipv6(address) => IpAddr::V6(*address).to_canonical().is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a TLS listener.
    fn check(host: &str, origin: Option<&str>) -> bool {
        check_at(true, host, origin)
    }

    fn check_at(encrypted: bool, host: &str, origin: Option<&str>) -> bool {
        let allowed = OriginPolicy {
            hosts: vec!["mcp.example.org".into()],
            origins: vec!["https://app.example.org".into()],
            loopback_listener: true,
            any_host: false,
            encrypted,
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("header"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().expect("header"));
        }
        allowed.check(&headers).is_ok()
    }

    #[test]
    fn s07_loopback_and_configured_names_pass() {
        let mapped = "[::ffff:127.0.0.1]:8090";
        for host in
            ["localhost", "localhost:3000", "127.0.0.1:8090", "[::1]:8090", mapped, "mcp.example.org:443", "LOCALHOST"]
        {
            assert!(check(host, None), "{host}");
        }
        for origin in ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:1", "https://app.example.org"] {
            assert!(check("localhost", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn s07_a_page_of_the_servers_own_passes_under_a_configured_name_alone() {
        assert!(check("mcp.example.org", Some("https://mcp.example.org")));
        assert!(check("mcp.example.org:8443", Some("https://mcp.example.org:8443")));
        assert!(!check("mcp.example.org:8443", Some("https://mcp.example.org")));
        assert!(!check("localhost", Some("https://mcp.example.org")));
        assert!(!check("mcp.example.org", Some("ftp://mcp.example.org")));
        let anywhere = OriginPolicy { loopback_listener: false, ..OriginPolicy::default() };
        let headers = [(HOST, "evil.example"), (ORIGIN, "http://evil.example")];
        let headers = headers.map(|(name, value)| (name, value.parse().expect("header"))).into_iter().collect();
        assert!(anywhere.check(&headers).is_err());
    }

    #[test]
    fn s07_a_page_of_the_other_scheme_is_not_the_servers_own() {
        for (encrypted, own, other) in [(true, "https", "http"), (false, "http", "https")] {
            for host in ["mcp.example.org", "mcp.example.org:8443"] {
                assert!(check_at(encrypted, host, Some(&format!("{own}://{host}"))), "{own}");
                assert!(!check_at(encrypted, host, Some(&format!("{other}://{host}"))), "{other}");
            }
        }
        // Behind a TLS-terminating proxy the operator configures the origin.
        assert!(check_at(false, "mcp.example.org", Some("https://app.example.org")));
    }

    #[test]
    fn s10_a_malformed_host_is_told_from_a_foreign_one() {
        for host in ["a", "a.example:80", "a.example:", "1.2.3.4", "[::1]:80", "%2Ftmp%2Fa.sock", "a_b.example", ""] {
            assert!(is_well_formed(host), "{host}");
        }
        for host in [
            "a b",
            "a/b",
            "a@b",
            "a:b",
            "a:+80",
            "a:99999",
            "[::1",
            "::1",
            "[::1]x",
            "[a]",
            "a%2",
            "a\"b",
            "a?b",
            "a#b",
            "a,b:80:90",
            "<a>",
            "a\\b",
            "a:80 ",
        ] {
            assert!(!is_well_formed(host), "{host}");
        }
    }

    #[test]
    fn s07_the_quick_look_lets_through_nothing_the_whole_one_would_not() {
        let rests = ["", ":", ":80", ":+80", ":99999", ".evil.example", "@evil.example", ":80@evil.example", "#", " "];
        for host in ["localhost", "127.0.0.1", "[::1]", "evil.example"] {
            for rest in rests {
                let header = format!("{host}{rest}");
                let whole = parse_host(&header).is_some_and(|(host, _)| is_loopback(&host));
                assert!(!is_plainly_loopback(&header) || whole, "{header}");
            }
        }
    }

    #[test]
    fn s07_a_name_given_twice_is_refused_even_if_both_are_ours() {
        for name in [HOST, ORIGIN] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost".parse().expect("header"));
            headers.insert(ORIGIN, "http://localhost".parse().expect("header"));
            assert!(OriginPolicy::default().check(&headers).is_ok());
            headers.append(&name, headers[&name].clone());
            assert!(OriginPolicy::default().check(&headers).is_err(), "{name}");
        }
    }

    #[test]
    fn s07_z18_names_that_only_look_like_ours_do_not() {
        for host in [
            "localhost.evil.example",
            "evil.example",
            "evil.example#localhost",
            "a@localhost",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert!(!check(host, None), "{host}");
        }
        for origin in [
            "http://localhost.evil.example",
            "http://evil.example",
            "null",
            "file://localhost",
            "https://app.example.org.evil.example",
            "http://app.example.org",
            "https://app.example.org:8443",
        ] {
            assert!(!check("localhost", Some(origin)), "{origin}");
        }
    }
}

//! Checks whether corbie responds at the URL of a client entry. Only loopback addresses are contacted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use super::health_probe::{self, PROCESS_NAME, ProbeResult};
use super::listening_process;

/// Suffix of every path at which corbie serves MCP.
const MCP_PATH: &str = "/mcp";

/// Result of probing a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UrlTarget {
    Corbie,
    /// corbie, but without MCP at this path.
    WrongPath,
    Unreachable,
    /// With the id and the name of the process, if they can be determined.
    Other(Option<(u32, String)>),
    /// A remote address, or a server that does not identify itself.
    NotProbed,
}

/// Probes a URL on this machine. Returns within seconds.
pub(super) fn probe(text: &str) -> UrlTarget {
    let Ok(url) = Url::parse(text) else { return UrlTarget::NotProbed };
    let (addresses, Some(host)) = (loopback_addresses(&url), url.host_str()) else { return UrlTarget::NotProbed };
    let Some(port) = url.port_or_known_default().filter(|_| !addresses.is_empty()) else { return UrlTarget::NotProbed };
    let addresses: Vec<SocketAddr> = addresses.into_iter().map(|address| (address, port).into()).collect();
    let process = || listening_process::listening_at(port);
    if url.scheme() == "https" {
        // A server with HTTPS is identified only by its process name; a proxy may be in front of corbie.
        return match addresses.into_iter().any(health_probe::is_listening) {
            false => UrlTarget::Unreachable,
            true if process().is_some_and(|(_, name)| name == PROCESS_NAME) => UrlTarget::Corbie,
            true => UrlTarget::NotProbed,
        };
    }
    let (host, path) = (format!("{host}:{port}"), health_path(&url));
    let answers: Vec<ProbeResult> =
        addresses.into_iter().filter_map(|address| health_probe::probe(address, &host, &path).ok()).collect();
    if answers.is_empty() {
        return UrlTarget::Unreachable;
    }
    classify_responses(&answers, process(), url.path().ends_with(MCP_PATH))
}

/// Interprets the responses. `is_path` is whether corbie could serve MCP at the path.
fn classify_responses(answers: &[ProbeResult], process: Option<(u32, String)>, is_path: bool) -> UrlTarget {
    let is_named = process.as_ref().is_some_and(|(_, name)| name == PROCESS_NAME);
    let is_corbie = answers.iter().any(|answer| health_probe::is_corbie(*answer, process.as_ref()));
    if (is_corbie || is_named) && !is_path {
        return UrlTarget::WrongPath;
    }
    if is_corbie {
        return UrlTarget::Corbie;
    }
    // corbie sends unauthenticated clients only a status, and the process of a proxy in front of corbie has another
    // name. So a bare status is inconclusive.
    if answers.contains(&ProbeResult::Healthy) { UrlTarget::NotProbed } else { UrlTarget::Other(process) }
}

/// The health endpoint that belongs to an MCP URL: same parent path, because a proxy may mount both under a prefix.
fn health_path(url: &Url) -> String {
    let path = url.path().trim_end_matches('/');
    let (place, _) = path.rsplit_once('/').unwrap_or_default();
    format!("{place}/health")
}

/// A URL without its credentials and query.
pub(super) fn redacted(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => "its URL".to_owned(),
    }
}

/// The loopback addresses of a URL; empty for a remote one. Does not resolve names, which could point to any host.
fn loopback_addresses(url: &Url) -> Vec<IpAddr> {
    if !matches!(url.scheme(), "http" | "https") {
        return Vec::new();
    }
    let addresses: Vec<IpAddr> = match url.host() {
        Some(Host::Domain("localhost")) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(_)) | None => Vec::new(),
    };
    addresses.into_iter().filter(|address| address.to_canonical().is_loopback()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_probed() {
        let addresses = |text: &str| loopback_addresses(&Url::parse(text).unwrap()).len();
        for here in ["http://127.0.0.1:1/mcp", "https://[::1]/mcp", "http://127.9.9.9", "http://[::ffff:127.0.0.1]:1/"]
        {
            assert_eq!(addresses(here), 1, "{here}");
        }
        assert_eq!(addresses("http://LOCALHOST:8090/mcp"), 2);
        for elsewhere in [
            "http://example.org/mcp",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "http://localhost@example.org/",
            "http://10.0.0.1:8090/mcp",
            "http://0.0.0.0:8090/mcp",
            "http://[::]:8090/mcp",
            "http://[::ffff:10.0.0.1]:8090/mcp",
            "ftp://localhost/",
            "unix:/run/corbie.sock",
        ] {
            assert_eq!(addresses(elsewhere), 0, "{elsewhere}");
            assert_eq!(probe(elsewhere), UrlTarget::NotProbed);
        }
        assert_eq!(probe("${input:url}"), UrlTarget::NotProbed);
    }

    #[test]
    fn https_listener_is_detected_without_a_request() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://127.0.0.1:{}/mcp", taken.local_addr().unwrap().port());
        assert_eq!(probe(&url), UrlTarget::NotProbed);
        drop(taken);
        assert_eq!(probe(&url), UrlTarget::Unreachable);
    }

    #[test]
    fn health_path_is_next_to_the_mcp_path() {
        let path = |text: &str| health_path(&Url::parse(text).unwrap());
        for text in ["http://localhost", "http://localhost/", "http://localhost/mcp", "http://localhost/mcp/?a=/b/c"] {
            assert_eq!(path(text), "/health", "{text}");
        }
        assert_eq!(path("http://localhost/behind/a/mcp"), "/behind/a/health");
    }

    #[test]
    fn bare_status_is_inconclusive() {
        let process = |name: &str| Some((7, name.to_owned()));
        assert_eq!(classify_responses(&[ProbeResult::Healthy], process("corbie"), true), UrlTarget::Corbie);
        assert_eq!(classify_responses(&[ProbeResult::Corbie], process("ssh"), true), UrlTarget::Corbie);
        assert_eq!(classify_responses(&[ProbeResult::Healthy], process("ssh"), true), UrlTarget::NotProbed);
        assert_eq!(
            classify_responses(&[ProbeResult::Other], process("nginx"), true),
            UrlTarget::Other(process("nginx"))
        );
        assert_eq!(classify_responses(&[ProbeResult::Corbie], None, false), UrlTarget::WrongPath);
        assert_eq!(classify_responses(&[ProbeResult::Other], process("corbie"), false), UrlTarget::WrongPath);
    }

    #[test]
    fn credentials_and_query_of_a_url_are_redacted() {
        assert_eq!(redacted("http://me:word@localhost:8090/mcp?key=1#x"), "http://localhost:8090/mcp");
        assert_eq!(redacted("${input:url}"), "its URL");
    }
}

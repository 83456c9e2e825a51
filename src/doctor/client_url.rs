//! Checks whether corbie responds at the URL of a client entry. Only loopback addresses are contacted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use super::health::{self, Answer, PROGRAM};
use super::process;

/// Suffix of every path at which corbie serves MCP.
const PATH: &str = "/mcp";

/// Result of probing a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Corbie,
    /// corbie, but without MCP at this path.
    WrongPath,
    Nobody,
    /// With the id and the name of the process, if they can be determined.
    Other(Option<(u32, String)>),
    /// A remote address, or a server that does not identify itself.
    NotAsked,
}

/// Probes a URL on this machine. Returns within seconds.
pub(super) fn look(text: &str) -> Found {
    let Ok(url) = Url::parse(text) else { return Found::NotAsked };
    let (addresses, Some(host)) = (loopback(&url), url.host_str()) else { return Found::NotAsked };
    let Some(port) = url.port_or_known_default().filter(|_| !addresses.is_empty()) else { return Found::NotAsked };
    let addresses: Vec<SocketAddr> = addresses.into_iter().map(|address| (address, port).into()).collect();
    let process = || process::listening_at(port);
    if url.scheme() == "https" {
        // A server with HTTPS is identified only by its process name; a proxy may be in front of corbie.
        return match addresses.into_iter().any(health::is_taken) {
            false => Found::Nobody,
            true if process().is_some_and(|(_, name)| name == PROGRAM) => Found::Corbie,
            true => Found::NotAsked,
        };
    }
    let (host, path) = (format!("{host}:{port}"), health_path(&url));
    let answers: Vec<Answer> =
        addresses.into_iter().filter_map(|address| health::ask(address, &host, &path).ok()).collect();
    if answers.is_empty() {
        return Found::Nobody;
    }
    judge(&answers, process(), url.path().ends_with(PATH))
}

/// Interprets the responses. `is_path` is whether corbie could serve MCP at the path.
fn judge(answers: &[Answer], process: Option<(u32, String)>, is_path: bool) -> Found {
    let is_named = process.as_ref().is_some_and(|(_, name)| name == PROGRAM);
    let is_corbie = answers.iter().any(|answer| health::is_corbie(*answer, process.as_ref()));
    if (is_corbie || is_named) && !is_path {
        return Found::WrongPath;
    }
    if is_corbie {
        return Found::Corbie;
    }
    // corbie sends unauthenticated clients only a status, and the process of a proxy in front of corbie has another
    // name. So a bare status is inconclusive.
    if answers.contains(&Answer::Well) { Found::NotAsked } else { Found::Other(process) }
}

/// The health endpoint that belongs to an MCP URL: same parent path, because a proxy may mount both under a prefix.
fn health_path(url: &Url) -> String {
    let path = url.path().trim_end_matches('/');
    let (place, _) = path.rsplit_once('/').unwrap_or_default();
    format!("{place}/health")
}

/// A URL without its credentials and query.
pub(super) fn shown(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => "its URL".to_owned(),
    }
}

/// The loopback addresses of a URL; empty for a remote one. Does not resolve names, which could point to any host.
fn loopback(url: &Url) -> Vec<IpAddr> {
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
    fn only_addresses_of_this_machine_are_asked() {
        let addresses = |text: &str| loopback(&Url::parse(text).unwrap()).len();
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
            assert_eq!(look(elsewhere), Found::NotAsked);
        }
        assert_eq!(look("${input:url}"), Found::NotAsked);
    }

    #[test]
    fn who_speaks_https_is_told_from_nobody_without_being_asked() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://127.0.0.1:{}/mcp", taken.local_addr().unwrap().port());
        assert_eq!(look(&url), Found::NotAsked);
        drop(taken);
        assert_eq!(look(&url), Found::Nobody);
    }

    #[test]
    fn health_is_asked_for_beside_the_path_of_mcp() {
        let path = |text: &str| health_path(&Url::parse(text).unwrap());
        for text in ["http://localhost", "http://localhost/", "http://localhost/mcp", "http://localhost/mcp/?a=/b/c"] {
            assert_eq!(path(text), "/health", "{text}");
        }
        assert_eq!(path("http://localhost/behind/a/mcp"), "/behind/a/health");
    }

    #[test]
    fn who_says_little_is_called_neither_corbie_nor_another() {
        let process = |name: &str| Some((7, name.to_owned()));
        assert_eq!(judge(&[Answer::Well], process("corbie"), true), Found::Corbie);
        assert_eq!(judge(&[Answer::Corbie], process("ssh"), true), Found::Corbie);
        assert_eq!(judge(&[Answer::Well], process("ssh"), true), Found::NotAsked);
        assert_eq!(judge(&[Answer::Other], process("nginx"), true), Found::Other(process("nginx")));
        assert_eq!(judge(&[Answer::Corbie], None, false), Found::WrongPath);
        assert_eq!(judge(&[Answer::Other], process("corbie"), false), Found::WrongPath);
    }

    #[test]
    fn what_may_be_secret_in_a_url_is_not_shown() {
        assert_eq!(shown("http://me:word@localhost:8090/mcp?key=1#x"), "http://localhost:8090/mcp");
        assert_eq!(shown("${input:url}"), "its URL");
    }
}

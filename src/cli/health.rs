//! `corbie health`: checks whether a server responds, for containers and scripts without an HTTP client.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use url::Url;

use super::{CommandResult, exit, json_output, sanitize_line, value_parsers};
use crate::config::address::{HostPort, Listen};
use crate::config::{Config, LoadedConfig};
use crate::running_servers::{self, RunningServer};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Health {
    /// URL of the server, such as http://127.0.0.1:8090; defaults to the running server, else to the first port in the
    /// settings
    #[arg(value_name = "URL", value_parser = value_parsers::http_url)]
    url: Option<Url>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exits with 0 if the server is ready, and with 1 if it does not respond or is shutting down.

Examples:
  corbie health                          # the running server
  corbie health http://127.0.0.1:3000    # the server at this URL
  corbie health --json                   # with the server's health report";

/// Timeout; a healthy server answers in milliseconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum response size.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;
const DEFAULT_PORT: u16 = 8090;
/// Error code for programs.
const NO_ANSWER: &str = "unreachable";

pub(super) fn run(command: &Health, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let url = match &command.url {
        Some(url) => url.clone(),
        None => default_url(&loaded.config, &running_servers::find(&loaded.sources.variables))?,
    };
    let answer = query_health(&url);
    let ready = matches!(&answer, Ok((200, _)));
    if command.json {
        let said = match &answer {
            Ok((status, health)) => json!({ "url": url.as_str(), "ready": ready, "status": status, "health": health }),
            Err(error) => {
                let mut failed = exit::error_object(NO_ANSWER, &no_answer_message(&url, error));
                failed["url"] = json!(url.as_str());
                failed["ready"] = json!(false);
                failed
            }
        };
        json_output::write(&said, out)?;
    } else {
        match &answer {
            Ok((_, health)) if ready => {
                let status = sanitize_line(health["status"].as_str().unwrap_or("ok"));
                writeln!(out, "{url} is ready (status {status})")?
            }
            Ok((status, _)) => writeln!(out, "{url} is not ready (HTTP status {status})")?,
            Err(error) => {
                return Err(no_answer_message(&url, error).into());
            }
        }
    }
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn no_answer_message(url: &Url, error: &io::Error) -> String {
    format!("{url} does not respond: {error}; is `corbie serve` running there?")
}

/// The running server: the one at the configured address, else the newest. Without a running server, the configured
/// address, because the server may belong to another user.
fn default_url(config: &Config, servers: &[RunningServer]) -> Result<Url, String> {
    let configured = url_of(config);
    let is_configured = |url: &Url| configured.as_ref().is_ok_and(|configured| configured.port() == url.port());
    let mut urls: Vec<Url> = servers.iter().filter_map(RunningServer::plain_url).collect();
    let preferred = urls.iter().position(is_configured).unwrap_or_default();
    if urls.is_empty() {
        return configured;
    }
    let mut url = urls.swap_remove(preferred);
    url.set_path("/");
    Ok(url)
}

/// The server of these settings, as reached from its own machine.
fn url_of(config: &Config) -> Result<Url, String> {
    let first = config.server.listen.iter().find_map(|listen| match listen {
        Listen::Port(address) => Some(address),
        Listen::Socket(_) => None,
    });
    if config.server.tls.is_some() || (first.is_none() && !config.server.listen.is_empty()) {
        return Err("no TCP listener without TLS is configured; specify a URL, such as http://127.0.0.1:8090".into());
    }
    let (host, port) = first.map_or(("127.0.0.1", DEFAULT_PORT), |address| (address.host(), address.port()));
    // A wildcard address includes loopback.
    let host = match host {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    };
    Url::parse(&format!("http://{}/", HostPort::new(host, port)))
        .map_err(|error| format!("`server.listen` is not a valid address: {error}"))
}

/// The status of `/ready` and the body of `/health`.
fn query_health(url: &Url) -> io::Result<(u16, Value)> {
    let (status, _) = get(url, "/ready")?;
    let (_, health) = get(url, "/health")?;
    Ok((status, serde_json::from_slice(&health).unwrap_or_default()))
}

/// One HTTP request over a plain socket, which is faster than setting up an HTTP client.
fn get(url: &Url, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(DEFAULT_PORT);
    let mut refused = io::Error::other("the host name has no address");
    for address in (host.trim_matches(['[', ']']), port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, REQUEST_TIMEOUT) {
            Ok(stream) => stream,
            Err(error) => {
                refused = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut answer)?;
        return parse(&answer).ok_or_else(|| io::Error::other("the response is not HTTP"));
    }
    Err(refused)
}

/// Status and body of a response.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = memchr::memmem::find(answer, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, answer[end + 4..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_has_a_status_and_a_body() {
        assert_eq!(parse(b"HTTP/1.1 503 Service Unavailable\r\na: b\r\n\r\n{}"), Some((503, b"{}".to_vec())));
        for other in ["", "HTTP/1.1 200", "SSH-2.0\r\n\r\n", "HTTP/1.1 2\r\n\r\n"] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn running_server_is_preferred_to_the_configured_address() {
        let server = |port: u16| RunningServer {
            pid: 1,
            started_ms: 0,
            urls: vec![format!("https://127.0.0.1:{port}1/mcp"), format!("http://127.0.0.1:{port}/mcp")],
            routing_digest: String::new(),
        };
        let url = |servers: &[RunningServer]| default_url(&Config::default(), servers).unwrap().to_string();
        assert_eq!(url(&[]), "http://127.0.0.1:8090/");
        assert_eq!(url(&[server(999), server(998)]), "http://127.0.0.1:999/");
        assert_eq!(url(&[server(999), server(8090)]), "http://127.0.0.1:8090/");
    }

    #[test]
    fn configured_address_is_asked_on_this_machine() {
        let with = |listen: &str| {
            let mut config = Config::default();
            config.server.listen = vec![serde_json::from_value(json!(listen)).unwrap()];
            url_of(&config).map(|url| url.to_string())
        };
        assert_eq!(with("0.0.0.0:9000").unwrap(), "http://127.0.0.1:9000/");
        assert_eq!(with("[::]:9000").unwrap(), "http://[::1]:9000/");
        assert!(with("unix:/run/corbie.sock").unwrap_err().contains("specify a URL"));
        assert_eq!(url_of(&Config::default()).unwrap().as_str(), "http://127.0.0.1:8090/");
    }
}

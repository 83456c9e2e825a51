//! Servers for the exchanges: the real program, with settings by the name in the corpus.

use serde_json::Value;

use crate::byte_template::ServerValues;
use crate::http::HttpClient;
use crate::process::{TestCommand, TestProcess, corbie, request, wait_for};
use crate::raw_socket::find;
use crate::trap_files;

/// A running program.
pub(crate) struct TargetServer {
    pub(crate) running: TestProcess,
    pub(crate) client: HttpClient,
    pub(crate) values: ServerValues,
    kind: String,
    check_count: u64,
}

/// The token of servers with authentication.
pub(crate) const TOKEN: &str = "8f383ccddc6f17eb57a96c711523e4a8072d8e79";
/// Maximum memory after any exchange. The program needs 50 MB to run, and 110 MB when it classifies.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 256 << 20;
/// Prefix of all limit settings.
const LIMITS_PREFIX: &str = "SERVER__LIMITS__";

/// Additional settings of servers of this name.
fn settings_of_kind(kind: &str) -> Vec<(String, &'static str)> {
    let named = |prefix: &str, settings: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
        settings.iter().map(|(name, value)| (format!("CORBIE_{prefix}{name}"), *value)).collect()
    };
    let token = || named("SERVER__", &[("AUTH", "bearer"), ("TOKEN", TOKEN)]);
    match kind {
        "plain" | "stdio" | "files" => Vec::new(),
        "token" => token(),
        "rate" => [token(), named("SERVER__RATE_LIMIT__", &[("PER_SECOND", "1"), ("BURST", "10")])].concat(),
        "names" => named(
            "SERVER__",
            &[("ALLOWED_ORIGINS", r#"["https://app.example.org"]"#), ("ALLOWED_HOSTS", r#"["mcp.example.org"]"#)],
        ),
        // Long enough for a regular client on a busy machine.
        "quick" => named(
            LIMITS_PREFIX,
            &[("REQUEST_READ_TIMEOUT", "500ms"), ("IDLE_TIMEOUT", "500ms"), ("WRITE_TIMEOUT", "500ms")],
        ),
        "small" => named(
            LIMITS_PREFIX,
            &[
                ("MAX_MESSAGE_BYTES", "10000"),
                ("MAX_HEADER_BYTES", "8192"),
                ("MAX_BATCH", "5"),
                ("MAX_JSON_DEPTH", "16"),
                ("MAX_CONNECTIONS", "8"),
                ("MAX_SESSIONS", "2"),
            ],
        ),
        _ => panic!("there is no server of the name `{kind}`"),
    }
}

impl TargetServer {
    /// Starts with the most verbose log: secrets must not be logged at any level.
    pub(crate) fn start(kind: &str) -> TargetServer {
        let setup = corbie("serve --stdio --port 0").variable("LOG_LEVEL", "debug");
        let setup = settings_of_kind(kind).iter().fold(setup, |setup, (name, value)| setup.variable(name, value));
        let setup = if kind == "files" { with_files(setup) } else { setup };
        let folder = setup.folder().to_str().expect("a folder with a name").to_owned();
        let mut running = setup.start();
        let client = running.client();
        let facts =
            ServerValues { port: client.0.port().to_string(), token: TOKEN.into(), folder, session: String::new() };
        TargetServer { running, client, values: facts, kind: kind.into(), check_count: 0 }
    }

    /// The next client is served, independent of the previous ones.
    pub(crate) fn check_alive(&mut self) -> Result<(), String> {
        self.check_count += 1;
        let id = format!("good-{}", self.check_count);
        let ping = request(id.as_str(), "ping", Value::Object(Default::default()));
        let expected = serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": {} });
        let answer = match &*self.kind {
            "stdio" => self.running.send_and_receive(&ping),
            // The exchange has used up the rate limit of this address; these pages are exempt.
            "rate" => match self.client.get("/live") {
                reply if reply.status == 200 => return Ok(()),
                reply => return Err(format!("`/live` answers {reply:?}")),
            },
            _ => {
                let bearer = format!("Bearer {TOKEN}");
                let headers = [("Authorization", bearer.as_str())];
                // A disconnected client may still hold its permit briefly.
                let reply = wait_for("a place", || {
                    let reply = self.client.try_call("POST", "/mcp", &headers, &ping.to_string());
                    reply.as_ref().map_or(true, |reply| reply.status != 503).then_some(reply)
                });
                reply.map_err(|error| format!("a good request fails: {error}"))?.json()
            }
        };
        if answer == expected { Ok(()) } else { Err(format!("a good request gets {answer}")) }
    }

    /// Checks that no work or connection remains, that the log has complete lines without secrets, and that it exits
    /// cleanly.
    pub(crate) fn stop_and_check(mut self, never_logged: &[(String, Vec<u8>)]) -> Result<(), String> {
        let bearer = format!("Bearer {TOKEN}");
        if self.kind != "rate" {
            wait_for("work and connections to end", || {
                let page = self.client.call("GET", "/metrics", &[("Authorization", &bearer)], "").body;
                let count = |name: &str| {
                    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                    line.and_then(|count| count.parse::<u32>().ok()).unwrap_or_else(|| panic!("no {name} in {page}"))
                };
                // The one connection is that of this request.
                (count("corbie_requests_in_flight") == 0 && count("corbie_connections") <= 1).then_some(())
            });
        }
        #[cfg(target_os = "linux")]
        if self.running.peak_resident_bytes() > MAX_MEMORY {
            return Err(format!("it took {} bytes of memory", self.running.peak_resident_bytes()));
        }
        self.running.terminate();
        let ended = self.running.wait();
        if cfg!(unix) && ended.code != Some(0) {
            return Err(format!("it ended with {:?}", ended.code));
        }
        let log = ended.stderr.as_bytes();
        for (exchange, text) in never_logged.iter().chain([&("the token".into(), TOKEN.into())]) {
            if find(log, text).is_some() {
                return Err(format!("{exchange}: the log has {:?}", String::from_utf8_lossy(text)));
            }
        }
        let is_entry = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit() || first == '{');
        match ended.stderr.lines().find(|line| !is_entry(line) || line.contains(|each: char| each.is_control())) {
            Some(line) => Err(format!("no entry of the log: {line:?}")),
            None => Ok(()),
        }
    }
}

/// Files that may be added, and files that must not be.
fn with_files(setup: TestCommand) -> TestCommand {
    let allowed = setup.folder().join("allowed");
    trap_files::create(setup.folder(), &allowed);
    setup.variable("CORBIE_KNOWLEDGE__ALLOWED_ROOTS", serde_json::json!([allowed]))
}

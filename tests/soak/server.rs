//! The server process under test: start, readiness, stop, kill and resource usage.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::call_outcome::CallOutcome;
use crate::http::{HttpConnection, HttpRequest, ServerAddress};
use crate::program::ProgramConfig;
use crate::protocols;

/// Upper bound for any operation, even on a busy machine.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Exported only after the first restart of a background task.
const RESTARTS_METRIC: &str = "corbie_background_restarts_total";
const STUCK_METRIC: &str = "corbie_inference_stuck_threads";

#[derive(Debug)]
pub(crate) struct ServerProcess {
    pub(crate) program: ProgramConfig,
    child: Child,
}

impl ServerProcess {
    /// Starts the server, waits for the first reply and returns the time it took.
    pub(crate) fn start(program: ProgramConfig) -> Result<(ServerProcess, Duration), String> {
        let begun = Instant::now();
        let child = program.serve().map_err(|error| format!("the program does not start: {error}"))?;
        let mut server = ServerProcess { program, child };
        server.wait_for_answer()?;
        Ok((server, begun.elapsed()))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address
    }

    /// Waits until a search succeeds or reports an empty base.
    pub(crate) fn wait_for_answer(&mut self) -> Result<(), String> {
        let until = Instant::now() + RESPONSE_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("the server ended by itself with {status}:\n{}", self.log_tail()));
            }
            let word = self.program.known_word.as_deref();
            let arguments = json!({ "query": word.unwrap_or("anything") });
            let last = self.call("knowledge-search", &arguments, Duration::from_secs(5));
            if let CallOutcome::Answered(said) = &last {
                let is_answer = match word {
                    Some(word) => said["results"].to_string().contains(word),
                    None => said["results"].is_array() || said["error"] == "empty_knowledge_base",
                };
                if is_answer {
                    return Ok(());
                }
            }
            if Instant::now() > until {
                return Err(format!("the server does not answer: {last:?}\n{}", self.log_tail()));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        protocols::plain_http(self.address()).call(tool, arguments, patience)
    }

    /// The names of all tools.
    pub(crate) fn tool_names(&self) -> Result<Vec<String>, String> {
        let said = match self.call("list_registered_tools", &json!({}), RESPONSE_TIMEOUT) {
            CallOutcome::Answered(said) => said,
            other => return Err(format!("the tools are not told: {other:?}")),
        };
        let tools = said["tools"].as_array().into_iter().flatten();
        let names: Vec<String> = tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
        if names.is_empty() { Err(format!("there are no tools: {said}")) } else { Ok(names) }
    }

    /// Internal errors without an effect on clients: restarted background tasks and stuck threads.
    pub(crate) fn internal_errors(&self) -> Result<u64, String> {
        let request = HttpRequest { method: "GET", path: "/metrics", headers: &[], body: &[] };
        let reply = HttpConnection::new(ServerAddress::Tcp(self.address())).send(&request, RESPONSE_TIMEOUT);
        let text = reply.map_err(|error| format!("/metrics: {error}"))?.text();
        let counted = |name: &str| -> Result<u64, String> {
            let lines = text.lines().filter(|line| line.starts_with(name));
            let values = lines.map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()));
            let values: Option<Vec<f64>> = values.collect();
            values.map(|values| values.iter().sum::<f64>() as u64).ok_or_else(|| format!("{name} is no number: {text}"))
        };
        if !text.contains(STUCK_METRIC) {
            return Err(format!("/metrics does not tell {STUCK_METRIC}: {text}"));
        }
        Ok(counted(RESTARTS_METRIC)? + counted(STUCK_METRIC)?)
    }

    /// Waits until no task or request is in progress.
    pub(crate) fn wait_until_idle(&mut self) -> Result<(), String> {
        let until = Instant::now() + RESPONSE_TIMEOUT * 2;
        loop {
            let active = self.call("knowledge-tasks", &json!({ "active_only": true }), RESPONSE_TIMEOUT);
            let inside = self.call("inspect_server", &json!({}), RESPONSE_TIMEOUT);
            let is_idle = match (&active, &inside) {
                // This request itself counts as one in flight.
                (CallOutcome::Answered(tasks), CallOutcome::Answered(inside)) => {
                    tasks["tasks"].as_array().is_some_and(Vec::is_empty)
                        && inside["queues"]["requests_in_flight"].as_u64().is_none_or(|number| number <= 1)
                }
                _ => false,
            };
            if is_idle {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("it does not come to rest: {active:?} {inside:?}"));
            }
            std::thread::sleep(POLL_INTERVAL * 10);
        }
    }

    /// The exit status, if it has ended.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Child processes, recursively.
    pub(crate) fn descendants(&self) -> Vec<Pid> {
        descendants(self.pid())
    }

    /// Kills the server. Its child processes must not outlive it.
    pub(crate) fn kill(mut self) -> Result<ProgramConfig, String> {
        let workers = self.descendants();
        self.child.kill().and_then(|()| self.child.wait()).map_err(|error| error.to_string())?;
        let until = Instant::now() + RESPONSE_TIMEOUT;
        while workers.iter().any(|worker| test_kill_process(*worker).is_ok() && !is_zombie(*worker)) {
            if Instant::now() > until {
                return Err(format!("processes outlive the server that started them: {workers:?}"));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(self.program.clone())
    }

    /// Sends SIGTERM and waits for the exit.
    pub(crate) fn stop(mut self) -> Result<ProgramConfig, String> {
        kill_process(self.pid(), Signal::TERM).map_err(|error| error.to_string())?;
        let until = Instant::now() + RESPONSE_TIMEOUT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(self.program.clone()),
                Ok(Some(status)) => {
                    return Err(format!("asked to end, it ended with {status}:\n{}", self.log_tail()));
                }
                _ if Instant::now() > until => return Err("it does not end when it is asked to".to_owned()),
                _ => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    pub(crate) fn resource_usage(&self) -> Option<ResourceUsage> {
        ResourceUsage::of_process(self.pid())
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.program.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // A failed run must not leave a process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Limited resources held by a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResourceUsage {
    pub(crate) files: usize,
    pub(crate) threads: usize,
    /// Private memory in KiB, without file mappings, which processes share.
    pub(crate) memory: usize,
}

impl ResourceUsage {
    pub(crate) fn of_process(process: Pid) -> Option<ResourceUsage> {
        let folder = format!("/proc/{}", process.as_raw_nonzero());
        let files = fs::read_dir(format!("{folder}/fd")).ok()?.count();
        let status = fs::read_to_string(format!("{folder}/status")).ok()?;
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        Some(ResourceUsage { files, threads: number("Threads:")?, memory: number("RssAnon:")? })
    }
}

fn descendants(of: Pid) -> Vec<Pid> {
    let parent = |entry: &str| -> Option<(i32, i32)> {
        let status = fs::read_to_string(format!("/proc/{entry}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        Some((entry.parse().ok()?, parent.trim().parse().ok()?))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<(i32, i32)> = entries.filter_map(|entry| parent(entry.file_name().to_str()?)).collect();
    let mut found = vec![of.as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(process) = found.get(next).copied() {
        found.extend(all.iter().filter(|(_, parent)| *parent == process).map(|(child, _)| *child));
        next += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

fn is_zombie(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

/// A currently free port.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()
}

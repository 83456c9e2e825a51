//! One round: a fresh process, its first reply, a warm-up, the measured window, and its end.
//!
//! A new process for every round keeps rounds independent of each other, and gives as many starts as there are rounds.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Effort;
use crate::http::{self, LoadClient, SizedCall};
use crate::machine;
use crate::mcp_servers::McpServer;
use crate::process::{PinnedCore, Process, sleep};
use crate::request::PreparedCall;
use crate::stdio::Pipes;
use crate::window::{self, Driver, LoadResult};
use crate::workload::{Era, Tool, Transport, Workload};

#[derive(Debug)]
pub(crate) struct RoundResult {
    /// From the start of the process to the reply to a small call, including a legacy handshake.
    pub(crate) first_reply: Duration,
    /// Resident bytes after that reply.
    pub(crate) idle_bytes: u64,
    /// Resident bytes after the load.
    pub(crate) loaded_bytes: u64,
    pub(crate) load: LoadResult,
}

/// Load on an HTTP server.
#[derive(Debug)]
pub(crate) struct HttpLoad<'a> {
    /// Sent once before the load.
    pub(crate) first: &'a PreparedCall,
    /// Sent in turn, in the same era as the first.
    pub(crate) calls: &'a [PreparedCall],
    /// One call at a time on each.
    pub(crate) connections: usize,
}

/// The first call of every process, the same for all workloads.
const FIRST_CALL: Tool = Tool::Echo { bytes: 100 };
/// Lets a server finish its one-time work after the first reply.
const SETTLE_DELAY: Duration = Duration::from_millis(20);

pub(crate) fn run(server: McpServer, workload: &Workload, era: Era, effort: Effort) -> Result<RoundResult> {
    let round = match workload.transport {
        Transport::Stdio => over_stdio(server, workload, era, effort),
        Transport::Http => over_http(server, workload, era, effort),
    };
    let log = server.log(workload.transport);
    let round = round.with_context(|| format!("{}, {}, {} (see {log})", server.name(), workload.name(), era.name()))?;
    ensure!(round.load.calls > 0, "{} answered nothing within the measured time: {}", server.name(), workload.name());
    Ok(round)
}

fn over_stdio(server: McpServer, workload: &Workload, era: Era, effort: Effort) -> Result<RoundResult> {
    let _one_core = if workload.one_core { Some(PinnedCore::pin()?) } else { None };
    let (process, stdin, stdout) = Process::with_pipes(server.command(None), &server.log(Transport::Stdio))?;
    let mut pipes = Pipes::new(stdin, stdout)?;
    if era == Era::Legacy {
        pipes.initialize()?;
    }
    pipes.call_once(&PreparedCall::new(FIRST_CALL, era))?;
    let first_reply = process.started.elapsed();
    sleep(SETTLE_DELAY);
    let idle = process.resident_bytes()?;

    let call = PreparedCall::new(workload.tool, era);
    let reply_length = pipes.call_once(&call)?;
    let driver: Driver<'_> = Box::new(|meter| pipes.drive(&call, workload.concurrency, reply_length, meter));
    let driven = window::measure(&process, effort, vec![driver])?;
    Ok(RoundResult { first_reply, idle_bytes: idle, loaded_bytes: process.resident_bytes()?, load: driven })
}

fn over_http(server: McpServer, workload: &Workload, era: Era, effort: Effort) -> Result<RoundResult> {
    let (first, call) = (PreparedCall::new(FIRST_CALL, era), PreparedCall::new(workload.tool, era));
    let log = server.log(Transport::Http);
    let load = HttpLoad { first: &first, calls: &[call], connections: workload.concurrency };
    under_load(|port| server.command(Some(port)), &log, &load, effort)
}

/// Starts a server on a port and puts it under this load.
pub(crate) fn under_load(
    server: impl FnOnce(u16) -> Command,
    log: &str,
    load: &HttpLoad<'_>,
    effort: Effort,
) -> Result<RoundResult> {
    let port = http::free_port()?;
    let mut process = Process::without_pipes(server(port), log)?;
    let mut first = LoadClient::connect_first(&mut process, port, load.first.era())?;
    first.call_once(load.first)?;
    let first_reply = process.started.elapsed();
    sleep(SETTLE_DELAY);
    let idle = process.resident_bytes()?;

    let mut clients = connect(first, load.connections)?;
    let mut known = Vec::with_capacity(load.calls.len());
    for call in load.calls {
        known.push(SizedCall { call, reply_length: clients[0].call_once(call)? });
    }
    // Half of the cores for the load, the other half for the server.
    let threads = (machine::core_count() / 2).clamp(1, load.connections);
    let share = clients.len().div_ceil(threads);
    let drivers = clients.chunks_mut(share).map(|clients| -> Driver<'_> {
        let known = &known;
        Box::new(move |meter| http::drive(clients, known, meter))
    });
    let driven = window::measure(&process, effort, drivers.collect())?;
    Ok(RoundResult { first_reply, idle_bytes: idle, loaded_bytes: process.resident_bytes()?, load: driven })
}

fn connect(first: LoadClient, count: usize) -> Result<Vec<LoadClient>> {
    let mut clients = vec![first];
    while clients.len() < count {
        clients.push(clients[0].new_client()?);
    }
    Ok(clients)
}

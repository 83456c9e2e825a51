//! One round of one gateway: a fresh process, its first response, and the loads one after the other.
//!
//! The gateway has its own core; the upstream and the load generator share another.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rustix::thread::CpuSet;
use serde::Serialize;

use super::auto;
use super::expected_response::ExpectedResponse;
use super::gateways::{Gateway, PROGRAMS};
use super::load::{self, Connection, LoadSample};
use super::request::{self, ResponseShape};
use crate::Effort;
use crate::http;
use crate::process::{PinnedCore, Process, sleep};
use crate::process_tree::{self, CpuSnapshot};

/// Results of one round; NaN if not measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct GatewayStats {
    /// From the start of the process to the first correct response.
    pub(super) first_200_ms: f64,
    /// One connection, sequential requests.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// 32 connections.
    pub(super) per_second: f64,
    pub(super) cpu_us: f64,
    pub(super) burst: StreamStats,
    pub(super) spaced: StreamStats,
    /// After all loads.
    pub(super) resident_mb: f64,
    /// The error in the streams, if any.
    pub(super) wrong: Option<String>,
}

/// Streamed responses.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct StreamStats {
    pub(super) per_second: f64,
    pub(super) cpu_us: f64,
    /// JSON events per response.
    pub(super) events: usize,
}

/// The shared upstream and the core assignment.
#[derive(Debug)]
pub(super) struct GatewayBed {
    cores: CpuSet,
    upstream: u16,
    _process: Process,
    _core: PinnedCore,
}

const CONNECTIONS: usize = 32;
/// Few, so that a gateway is not saturated and events arrive one by one.
const PACED_CONNECTIONS: usize = 8;
/// Start timeout of a gateway; LiteLLM imports many libraries.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const GATEWAY_CORE: usize = 0;
const OTHER_CORE: usize = 1;

impl GatewayBed {
    /// Starts the upstream, next to this thread on the core not used by the gateways.
    pub(super) fn prepare() -> Result<GatewayBed> {
        let cores = rustix::thread::sched_getaffinity(None)?;
        let core = PinnedCore::pin_to(cores, OTHER_CORE)?;
        let upstream = http::free_port()?;
        let mut command = std::process::Command::new(format!("{PROGRAMS}/upstream_server"));
        command.args(["--port", &upstream.to_string()]);
        let mut process = Process::without_pipes(command, ".tools/bench/logs/gateway-upstream.log")?;
        while Connection::open(upstream).is_err() {
            ensure!(process.started.elapsed() < START_TIMEOUT, "the fake upstream does not listen");
            if let Some(status) = process.exit_status()? {
                bail!("the fake upstream ended: {status}");
            }
            sleep(Duration::from_millis(1));
        }
        Ok(GatewayBed { cores, upstream, _process: process, _core: core })
    }

    /// One round; the process has ended afterwards.
    pub(super) fn run(&self, gateway: Gateway, effort: Effort) -> Result<GatewayStats> {
        let port = if gateway == Gateway::Direct { self.upstream } else { http::free_port()? };
        let request = |shape| request::request_bytes(gateway, shape, port, self.upstream);
        if gateway == Gateway::CorbieAuto {
            auto::check_method()?;
        }
        let mut process = self.start(gateway, port)?;
        let started = process.as_ref().map_or_else(Instant::now, |process| process.started);
        let mut connection = first_answer(process.as_mut(), started, port, &request(ResponseShape::Full))?;
        let first_200_ms = started.elapsed().as_secs_f64() * 1e3;
        if gateway == Gateway::CorbieAuto {
            auto::check_routing(&mut connection, request)?;
        }
        let id = process.as_ref().map(Process::id);
        let load = |shape, connections| measure(port, id, (shape, connections), &request(shape), effort);
        let (serial, ..) = load(ResponseShape::Full, 1)?;
        let (loaded, cpu_us, _) = load(ResponseShape::Full, CONNECTIONS)?;
        // A gateway with incorrect streams can still be measured otherwise.
        let streams = load(ResponseShape::Burst, CONNECTIONS).and_then(|burst| {
            Ok((StreamStats::of(burst), StreamStats::of(load(ResponseShape::Paced, PACED_CONNECTIONS)?)))
        });
        let wrong = streams.as_ref().err().map(|error| format!("its streams: {error:#}"));
        let (burst, spaced) = streams.unwrap_or((StreamStats::NONE, StreamStats::NONE));
        let resident_mb = match id {
            Some(id) => process_tree::resident(id)? as f64 / 1e6,
            None => f64::NAN,
        };
        if let Some(mut process) = process {
            // A process that does not stop is killed when its owner is dropped.
            let _ = process.stop(Duration::from_secs(2));
        }
        Ok(GatewayStats {
            first_200_ms: if id.is_some() { first_200_ms } else { f64::NAN },
            p50_us: serial.micros(0.5),
            p99_us: serial.micros(0.99),
            per_second: loaded.per_second(),
            cpu_us,
            burst,
            spaced,
            resident_mb,
            wrong,
        })
    }

    fn start(&self, gateway: Gateway, port: u16) -> Result<Option<Process>> {
        let Some(command) = gateway.command(port, self.upstream)? else { return Ok(None) };
        // A child process inherits the core of its parent.
        let _core = PinnedCore::pin_to(self.cores, GATEWAY_CORE)?;
        Ok(Some(Process::without_pipes(command, &gateway.log())?))
    }
}

/// Retries until the response is correct.
fn first_answer(mut process: Option<&mut Process>, started: Instant, port: u16, request: &[u8]) -> Result<Connection> {
    loop {
        let asked = Connection::open(port).and_then(|mut connection| {
            ExpectedResponse::from_first(ResponseShape::Full, connection.request(request)?)?;
            Ok(connection)
        });
        match asked {
            Ok(connection) => return Ok(connection),
            Err(error) if started.elapsed() > START_TIMEOUT => return Err(error.context("it does not start")),
            Err(_) => {}
        }
        if let Some(status) = process.as_mut().map(|process| process.exit_status()).transpose()?.flatten() {
            bail!("it ended while it started: {status}");
        }
        sleep(Duration::from_micros(500));
    }
}

/// Returns the responses, CPU microseconds of the gateway per response, and events per response.
fn measure(
    port: u16,
    id: Option<u32>,
    (shape, connections): (ResponseShape, usize),
    request: &[u8],
    effort: Effort,
) -> Result<(LoadSample, f64, usize)> {
    let mut all: Vec<Connection> = (0..connections).map(|_| Connection::open(port)).collect::<Result<_>>()?;
    let expected = ExpectedResponse::from_first(shape, all[0].request(request)?)?;
    load::drive(&mut all, request, &expected, effort.warm_up)?;
    let before = id.map(CpuSnapshot::of).transpose()?;
    let sample = load::drive(&mut all, request, &expected, effort.measure)?;
    let after = id.map(CpuSnapshot::of).transpose()?;
    let cpu = before.zip(after).map(|(before, after)| after.micros_since(&before) / sample.answers as f64);
    let events = if let ExpectedResponse::Events(events) = expected { events } else { 0 };
    Ok((sample, cpu.unwrap_or(f64::NAN), events))
}

impl StreamStats {
    const NONE: StreamStats = StreamStats { per_second: f64::NAN, cpu_us: f64::NAN, events: 0 };

    fn of((sample, cpu_us, events): (LoadSample, f64, usize)) -> StreamStats {
        StreamStats { per_second: sample.per_second(), cpu_us, events }
    }
}

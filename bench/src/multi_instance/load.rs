//! Searches over HTTP with the whole program: by one client, and by several concurrent clients over one, two and four
//! instances.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use serde::Serialize;
use serde_json::json;

use super::populated_base::{PopulatedBase, wait_until_merged};
use super::postgres_server::PostgresServer;
use super::{FOLDER, StoreKind};
use crate::http::LoadClient;
use crate::knowledge::corbie_server::{CorbieServer, StorageLocation, empty_folder};
use crate::process::sleep;
use crate::protocol::median;
use crate::report::{ResultTable, group_thousands, three_digits};

/// One configuration, over all rounds.
#[derive(Debug, Serialize)]
pub(super) struct SearchMeasurement {
    pub(super) chunks: usize,
    pub(super) kept: StoreKind,
    pub(super) instances: usize,
    pub(super) clients: usize,
    rounds: Vec<SearchRound>,
}

#[derive(Debug, Serialize)]
struct SearchRound {
    searches_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// CPU time of all instances per search.
    cpu_ms: f64,
    database_cpu_ms: f64,
}

/// Duration of each configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchEffort {
    pub(super) rounds: u32,
    pub(super) warm_up: Duration,
    pub(super) measure: Duration,
}

const CLIENTS: usize = 8;
/// One embedded store; any number of instances on a database.
const CONFIGURATIONS: [(StoreKind, usize, usize); 6] = [
    (StoreKind::Embedded, 1, 1),
    (StoreKind::Postgres, 1, 1),
    (StoreKind::Embedded, 1, CLIENTS),
    (StoreKind::Postgres, 1, CLIENTS),
    (StoreKind::Postgres, 2, CLIENTS),
    (StoreKind::Postgres, 4, CLIENTS),
];
/// The first reply arrives within this time.
const READY_TIMEOUT: Duration = Duration::from_secs(300);
/// Signals to the clients.
const STATE_WARM_UP: u8 = 0;
const STATE_MEASURE: u8 = 1;
const STATE_DONE: u8 = 2;

pub(super) fn measure(
    server: &PostgresServer,
    filled: &PopulatedBase,
    questions: &[String],
    effort: SearchEffort,
) -> Result<Vec<SearchMeasurement>> {
    let embedded = CorbieServer::start_at(&StorageLocation::Folder(&filled.folder), &log_path("embedded"))?;
    wait_until_ready(&embedded, &questions[0])?;
    let instances = start_instances(&filled.database.address, 4)?;
    wait_until_merged(&filled.database)?;
    instances.iter().try_for_each(|instance| wait_until_ready(instance, &questions[0]))?;
    let chunks = filled.chunks;
    let new = |(kept, instances, clients)| SearchMeasurement { chunks, kept, instances, clients, rounds: Vec::new() };
    let mut cells: Vec<SearchMeasurement> = CONFIGURATIONS.into_iter().map(new).collect();
    // Interleaved, so that all have the same conditions.
    for _ in 0..effort.rounds {
        for cell in &mut cells {
            let asked = match cell.kept {
                StoreKind::Embedded => std::slice::from_ref(&embedded),
                StoreKind::Postgres => &instances[..cell.instances],
            };
            cell.rounds.push(round(server, asked, cell.clients, questions, effort)?);
        }
    }
    for cell in &cells {
        eprintln!(
            " {} chunks, {}, {} of them, {} clients: {:.0} searches/s, p50 {:.2} ms",
            cell.chunks,
            cell.kept.name(),
            cell.instances,
            cell.clients,
            cell.rate(),
            cell.p50_ms()
        );
    }
    embedded.stop()?;
    for instance in instances {
        instance.stop()?;
    }
    Ok(cells)
}

/// Instances that share a database.
pub(super) fn start_instances(address: &str, count: usize) -> Result<Vec<CorbieServer>> {
    let instance = |number: usize| {
        let folder = empty_folder(&format!("{FOLDER}/instance-{number}"))?;
        CorbieServer::start_at(
            &StorageLocation::Database { address, folder: &folder },
            &log_path(&format!("instance-{number}")),
        )
    };
    (0..count).map(instance).collect()
}

/// A missing index is rebuilt before the first reply. The client times out before that and retries.
pub(super) fn wait_until_ready(program: &CorbieServer, question: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let answer = program.new_client().and_then(|mut client| {
            let told = client.call_tool("knowledge-search", json!({ "query": question }))?;
            ensure!(told["success"] == true, "the first search was answered with {told}");
            Ok(())
        });
        match answer {
            Err(error) if began.elapsed() > READY_TIMEOUT => return Err(error),
            Err(_) => sleep(Duration::from_millis(200)),
            Ok(()) => return Ok(()),
        }
    }
}

pub(super) fn log_path(name: &str) -> String {
    format!(".tools/bench/logs/many-{name}.log")
}

fn round(
    server: &PostgresServer,
    asked: &[CorbieServer],
    clients: usize,
    questions: &[String],
    effort: SearchEffort,
) -> Result<SearchRound> {
    let clients = (0..clients).map(|number| asked[number % asked.len()].new_client()).collect::<Result<Vec<_>>>()?;
    let state = AtomicU8::new(STATE_WARM_UP);
    let cpu = || -> Result<f64> { asked.iter().map(CorbieServer::cpu_seconds).sum() };
    thread::scope(|scope| {
        let count = clients.len();
        let threads: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(number, client)| {
                let (state, from) = (&state, number * questions.len() / count);
                scope.spawn(move || drive(client, questions, from, state))
            })
            .collect();
        let counted = (|| {
            sleep(effort.warm_up);
            let (before, database_before, began) = (cpu()?, server.cpu_seconds()?, Instant::now());
            state.store(STATE_MEASURE, Ordering::Relaxed);
            sleep(effort.measure);
            anyhow::Ok((cpu()? - before, server.cpu_seconds()? - database_before, began.elapsed().as_secs_f64()))
        })();
        // Stops the clients in any case, so that joining them does not hang.
        state.store(STATE_DONE, Ordering::Relaxed);
        let (cpu_s, database_cpu_s, wall_s) = counted?;
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        ensure!(!times.is_empty(), "no search was answered within {:?}", effort.measure);
        times.sort_by(f64::total_cmp);
        let searches = times.len() as f64;
        Ok(SearchRound {
            searches_per_s: searches / wall_s,
            p50_ms: times[times.len() / 2],
            p99_ms: times[times.len() * 99 / 100],
            cpu_ms: cpu_s * 1e3 / searches,
            database_cpu_ms: database_cpu_s * 1e3 / searches,
        })
    })
}

/// Sends one query after the other and returns the latencies of those answered during the measurement.
fn drive(mut client: LoadClient, questions: &[String], from: usize, state: &AtomicU8) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for question in questions.iter().cycle().skip(from) {
        let asked = Instant::now();
        let told = client.call_tool("knowledge-search", json!({ "query": question }))?;
        ensure!(told["success"] == true, "a search was answered with {told}");
        match state.load(Ordering::Relaxed) {
            STATE_WARM_UP => {}
            STATE_MEASURE => times.push(asked.elapsed().as_secs_f64() * 1e3),
            _ => break,
        }
    }
    Ok(times)
}

impl SearchMeasurement {
    pub(super) fn rate(&self) -> f64 {
        self.median(|round| round.searches_per_s)
    }

    pub(super) fn p50_ms(&self) -> f64 {
        self.median(|round| round.p50_ms)
    }

    fn median(&self, figure: fn(&SearchRound) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    /// The median of the ratios within each round.
    fn ratio_to(&self, other: &SearchMeasurement, figure: fn(&SearchRound) -> f64) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(one, other)| figure(one) / figure(other)))
    }
}

pub(super) fn find(
    cells: &[SearchMeasurement],
    chunks: usize,
    kept: StoreKind,
    instances: usize,
    clients: usize,
) -> Option<&SearchMeasurement> {
    cells.iter().find(|cell| {
        cell.chunks == chunks && cell.kept == kept && cell.instances == instances && cell.clients == clients
    })
}

/// Searches per second of several instances relative to one.
pub(super) fn scaling_ratio(cells: &[SearchMeasurement], chunks: usize, instances: usize) -> Option<f64> {
    let one = find(cells, chunks, StoreKind::Postgres, 1, CLIENTS)?;
    Some(find(cells, chunks, StoreKind::Postgres, instances, CLIENTS)?.ratio_to(one, |round| round.searches_per_s))
}

pub(super) fn latency_ratio(cells: &[SearchMeasurement], chunks: usize) -> Option<f64> {
    let embedded = find(cells, chunks, StoreKind::Embedded, 1, 1)?;
    Some(find(cells, chunks, StoreKind::Postgres, 1, 1)?.ratio_to(embedded, |round| round.p50_ms))
}

pub(super) fn table(cells: &[SearchMeasurement]) -> ResultTable {
    let header = [
        "chunks",
        "kept in",
        "instances",
        "clients",
        "searches/s",
        "p50 ms",
        "p99 ms",
        "CPU ms of instances",
        "CPU ms of the database",
        "searches/s of embedded",
        "p50 of embedded",
    ];
    let mut table = ResultTable::new("`knowledge-search` over HTTP, embedding included", &header);
    for cell in cells {
        let embedded =
            find(cells, cell.chunks, StoreKind::Embedded, 1, cell.clients).filter(|_| cell.kept != StoreKind::Embedded);
        let beside = |figure: fn(&SearchRound) -> f64| {
            embedded.map(|embedded| format!("{:.2}x", cell.ratio_to(embedded, figure))).unwrap_or_default()
        };
        let is_kept_there = cell.kept == StoreKind::Postgres;
        table.rows.push(vec![
            group_thousands(cell.chunks as f64),
            cell.kept.name().into(),
            cell.instances.to_string(),
            cell.clients.to_string(),
            three_digits(cell.rate()),
            format!("{:.2}", cell.p50_ms()),
            format!("{:.2}", cell.median(|round| round.p99_ms)),
            format!("{:.2}", cell.median(|round| round.cpu_ms)),
            is_kept_there.then(|| format!("{:.2}", cell.median(|round| round.database_cpu_ms))).unwrap_or_default(),
            beside(|round| round.searches_per_s),
            beside(|round| round.p50_ms),
        ]);
    }
    table
}

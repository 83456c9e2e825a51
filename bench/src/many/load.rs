//! Searches over HTTP with the whole program: by one client, and by several concurrent clients over one, two and four
//! instances.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use serde::Serialize;
use serde_json::json;

use super::filled::{Filled, settle};
use super::server::Server;
use super::{FOLDER, Kept};
use crate::http::Client;
use crate::knowledge::served::{Place, Served, fresh};
use crate::process::pause;
use crate::protocol::median;
use crate::report::{Table, short, thousands};

/// One configuration, over all rounds.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) chunks: usize,
    pub(super) kept: Kept,
    pub(super) instances: usize,
    pub(super) clients: usize,
    rounds: Vec<Round>,
}

#[derive(Debug, Serialize)]
struct Round {
    searches_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// CPU time of all instances per search.
    cpu_ms: f64,
    database_cpu_ms: f64,
}

/// Duration of each configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) rounds: u32,
    pub(super) warm_up: Duration,
    pub(super) measure: Duration,
}

const CLIENTS: usize = 8;
/// One embedded store; any number of instances on a database.
const WAYS: [(Kept, usize, usize); 6] = [
    (Kept::Embedded, 1, 1),
    (Kept::Postgres, 1, 1),
    (Kept::Embedded, 1, CLIENTS),
    (Kept::Postgres, 1, CLIENTS),
    (Kept::Postgres, 2, CLIENTS),
    (Kept::Postgres, 4, CLIENTS),
];
/// The first reply arrives within this time.
const PATIENCE: Duration = Duration::from_secs(300);
/// Signals to the clients.
const WARMING: u8 = 0;
const COUNTING: u8 = 1;
const OVER: u8 = 2;

pub(super) fn measure(server: &Server, filled: &Filled, questions: &[String], effort: Effort) -> Result<Vec<Cell>> {
    let embedded = Served::at(&Place::Folder(&filled.folder), &log("embedded"))?;
    until_ready(&embedded, &questions[0])?;
    let instances = start(&filled.database.address, 4)?;
    settle(&filled.database)?;
    instances.iter().try_for_each(|instance| until_ready(instance, &questions[0]))?;
    let chunks = filled.chunks;
    let new = |(kept, instances, clients)| Cell { chunks, kept, instances, clients, rounds: Vec::new() };
    let mut cells: Vec<Cell> = WAYS.into_iter().map(new).collect();
    // Interleaved, so that all have the same conditions.
    for _ in 0..effort.rounds {
        for cell in &mut cells {
            let asked = match cell.kept {
                Kept::Embedded => std::slice::from_ref(&embedded),
                Kept::Postgres => &instances[..cell.instances],
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
pub(super) fn start(address: &str, count: usize) -> Result<Vec<Served>> {
    let instance = |number: usize| {
        let folder = fresh(&format!("{FOLDER}/instance-{number}"))?;
        Served::at(&Place::Database { address, folder: &folder }, &log(&format!("instance-{number}")))
    };
    (0..count).map(instance).collect()
}

/// A missing index is rebuilt before the first reply. The client times out before that and retries.
pub(super) fn until_ready(program: &Served, question: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let answer = program.another().and_then(|mut client| {
            let told = client.tool("knowledge-search", json!({ "query": question }))?;
            ensure!(told["success"] == true, "the first search was answered with {told}");
            Ok(())
        });
        match answer {
            Err(error) if began.elapsed() > PATIENCE => return Err(error),
            Err(_) => pause(Duration::from_millis(200)),
            Ok(()) => return Ok(()),
        }
    }
}

pub(super) fn log(name: &str) -> String {
    format!(".tools/bench/logs/many-{name}.log")
}

fn round(server: &Server, asked: &[Served], clients: usize, questions: &[String], effort: Effort) -> Result<Round> {
    let clients = (0..clients).map(|number| asked[number % asked.len()].another()).collect::<Result<Vec<_>>>()?;
    let state = AtomicU8::new(WARMING);
    let cpu = || -> Result<f64> { asked.iter().map(Served::cpu_seconds).sum() };
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
            pause(effort.warm_up);
            let (before, database_before, began) = (cpu()?, server.cpu_seconds()?, Instant::now());
            state.store(COUNTING, Ordering::Relaxed);
            pause(effort.measure);
            anyhow::Ok((cpu()? - before, server.cpu_seconds()? - database_before, began.elapsed().as_secs_f64()))
        })();
        // Stops the clients in any case, so that joining them does not hang.
        state.store(OVER, Ordering::Relaxed);
        let (cpu_s, database_cpu_s, wall_s) = counted?;
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        ensure!(!times.is_empty(), "no search was answered within {:?}", effort.measure);
        times.sort_by(f64::total_cmp);
        let searches = times.len() as f64;
        Ok(Round {
            searches_per_s: searches / wall_s,
            p50_ms: times[times.len() / 2],
            p99_ms: times[times.len() * 99 / 100],
            cpu_ms: cpu_s * 1e3 / searches,
            database_cpu_ms: database_cpu_s * 1e3 / searches,
        })
    })
}

/// Sends one query after the other and returns the latencies of those answered during the measurement.
fn drive(mut client: Client, questions: &[String], from: usize, state: &AtomicU8) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for question in questions.iter().cycle().skip(from) {
        let asked = Instant::now();
        let told = client.tool("knowledge-search", json!({ "query": question }))?;
        ensure!(told["success"] == true, "a search was answered with {told}");
        match state.load(Ordering::Relaxed) {
            WARMING => {}
            COUNTING => times.push(asked.elapsed().as_secs_f64() * 1e3),
            _ => break,
        }
    }
    Ok(times)
}

impl Cell {
    pub(super) fn rate(&self) -> f64 {
        self.median(|round| round.searches_per_s)
    }

    pub(super) fn p50_ms(&self) -> f64 {
        self.median(|round| round.p50_ms)
    }

    fn median(&self, figure: fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    /// The median of the ratios within each round.
    fn beside(&self, other: &Cell, figure: fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(one, other)| figure(one) / figure(other)))
    }
}

pub(super) fn find(cells: &[Cell], chunks: usize, kept: Kept, instances: usize, clients: usize) -> Option<&Cell> {
    cells.iter().find(|cell| {
        cell.chunks == chunks && cell.kept == kept && cell.instances == instances && cell.clients == clients
    })
}

/// Searches per second of several instances relative to one.
pub(super) fn gain(cells: &[Cell], chunks: usize, instances: usize) -> Option<f64> {
    let one = find(cells, chunks, Kept::Postgres, 1, CLIENTS)?;
    Some(find(cells, chunks, Kept::Postgres, instances, CLIENTS)?.beside(one, |round| round.searches_per_s))
}

pub(super) fn latency(cells: &[Cell], chunks: usize) -> Option<f64> {
    let embedded = find(cells, chunks, Kept::Embedded, 1, 1)?;
    Some(find(cells, chunks, Kept::Postgres, 1, 1)?.beside(embedded, |round| round.p50_ms))
}

pub(super) fn table(cells: &[Cell]) -> Table {
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
    let mut table = Table::new("`knowledge-search` over HTTP, embedding included", &header);
    for cell in cells {
        let embedded =
            find(cells, cell.chunks, Kept::Embedded, 1, cell.clients).filter(|_| cell.kept != Kept::Embedded);
        let beside = |figure: fn(&Round) -> f64| {
            embedded.map(|embedded| format!("{:.2}x", cell.beside(embedded, figure))).unwrap_or_default()
        };
        let is_kept_there = cell.kept == Kept::Postgres;
        table.rows.push(vec![
            thousands(cell.chunks as f64),
            cell.kept.name().into(),
            cell.instances.to_string(),
            cell.clients.to_string(),
            short(cell.rate()),
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

//! Chaos test: injects faults into corbie repeatedly and checks that no data is lost.
//!
//! Clients of every kind use the real program over every transport while faults are injected ([`faults`]). Each client
//! keeps a ledger of its acknowledged writes outside of the program ([`ledger`]). After every fault the server becomes
//! idle and is compared with all ledgers: no acknowledged write is lost, no removed document reappears, no response is
//! wrong or belongs to another call. The choices follow a seed, which a failure prints.

mod clients;
mod corpus;
mod document_text;
mod faults;
mod leak_detection;
mod ledger;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use clients::{ChaosClient, ClientContext, InvariantViolation};
use corpus::Corpus;
use faults::{Fault, FaultContext, TmpfsDisk};
use report::{ChaosReport, RecoveryTimes};

use crate::RunResult;
use crate::program::{self, Binaries, ProgramConfig};
use crate::protocols::StdioPool;
use crate::rng::SeededRng;
use crate::server::{self, ServerProcess};
use crate::upstream::FakeUpstream;

/// Rounds between two full integrity checks by the program.
const CHECK_INTERVAL_ROUNDS: u64 = 20;

/// After this many rounds every tool must have succeeded, and every transport must have carried a success.
const ROUNDS_FOR_FULL_COVERAGE: u64 = 100;

/// A fault-free run shorter than this does not count as a soak test.
const MIN_SOAK: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Seed of the random generator; the same seed makes the same choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Duration of the run
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Maximum number of rounds
    #[arg(long)]
    rounds: Option<u64>,
    /// Faults to inject, in turn; all if omitted
    #[arg(long, value_enum)]
    scenario: Vec<Fault>,
    /// Number of clients
    #[arg(long, default_value_t = 12)]
    clients: usize,
    /// Minimum number of chunks before the run
    #[arg(long, default_value_t = 200)]
    chunks: usize,
    /// Plot the memory of the server over time to this SVG file
    #[arg(long)]
    plot: Option<PathBuf>,
    /// Keep the working folder
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(options: &Options, binaries: &Binaries) -> Result<RunResult, String> {
    let mut folder = tempfile::Builder::new().prefix("corbie-chaos-").tempdir().map_err(|error| error.to_string())?;
    folder.disable_cleanup(options.keep);
    let begun = Instant::now();
    let mut report = ChaosReport::default();
    let failure = run_in(options, binaries, folder.path(), &mut report).err();
    if let Some(plot) = &options.plot {
        std::fs::write(plot, report.soak.plot()).map_err(|error| format!("{}: {error}", plot.display()))?;
    }
    let failures = failure.into_iter().map(|failure| {
        folder.disable_cleanup(true);
        format!("seed {}: {failure}\nkept: {}", options.seed, folder.path().display())
    });
    let failures: Vec<String> = failures.collect();
    Ok(RunResult { report: report.to_json(options.seed, begun.elapsed()), passed: report.rounds as usize, failures })
}

fn run_in(options: &Options, binaries: &Binaries, folder: &Path, report: &mut ChaosReport) -> Result<(), String> {
    let in_words = |error: std::io::Error| error.to_string();
    let (home, storage) = (folder.join("home"), folder.join("disk"));
    std::fs::create_dir_all(home.join("files")).map_err(in_words)?;
    let disk = TmpfsDisk::mount(&storage, options.chunks);
    let environment = faults::clock_at_rest(&home).map_err(in_words)?;
    let mut program = ProgramConfig {
        binary: binaries.corbie.clone(),
        home,
        storage: storage.join("store"),
        address: server::free_address().map_err(in_words)?,
        limits: "",
        user: program::unprivileged_user(),
        known_word: None,
        environment,
    };
    let upstream_address = server::free_address().map_err(in_words)?;
    program.write_settings(upstream_address).map_err(in_words)?;
    let upstream = FakeUpstream::start(binaries.upstream.clone(), upstream_address).map_err(in_words)?;
    let shelf = Corpus::fill(&program, options.chunks)?;
    report.chunks = shelf.chunks;
    program.known_word = Some(corpus::word(0));
    let (server, _) = ServerProcess::start(program.clone())?;
    let mut world = FaultContext {
        server: Some(server),
        upstream,
        disk,
        corpus: shelf,
        internal_errors: 0,
        report: std::mem::take(report),
    };
    let outcome = rounds(options, &program, shelf, &mut world);
    *report = std::mem::take(&mut world.report);
    outcome
}

fn rounds(options: &Options, program: &ProgramConfig, shelf: Corpus, world: &mut FaultContext) -> Result<(), String> {
    let mut faults: Vec<Fault> = match options.scenario.is_empty() {
        true => faults::ALL.to_vec(),
        false => options.scenario.clone(),
    };
    for fault in faults.clone() {
        if let Some(why) = fault.unavailable_reason(world) {
            world.report.record_skipped(&format!("{}: {why}", fault.name()));
            faults.retain(|each| *each != fault);
        }
    }
    if faults.is_empty() {
        return Err("none of these faults can be made here".to_owned());
    }
    let tools = world.server()?.tool_names()?;
    let mut chance = SeededRng::for_part(options.seed, "faults");
    let processes = StdioPool::new(program);
    let mut clients = clients::create_clients(options.clients, options.seed, program, shelf, &processes);
    let begun = Instant::now();
    let until = begun + Duration::from_secs_f64(options.minutes * 60.0);
    while Instant::now() < until && options.rounds.is_none_or(|rounds| world.report.rounds < rounds) {
        // Round-robin instead of random: even a short run covers every fault.
        let fault = faults[world.report.rounds as usize % faults.len()];
        let starts = world.report.recoveries.len();
        let outcome = round(&mut clients, &processes, fault, world, &mut chance);
        world.report.calls = clients::total_counts(&clients);
        world.report.clients_killed = processes.killed_count();
        let recovered =
            outcome.map_err(|failure| format!("round {}, {}: {failure}", world.report.rounds + 1, fault.name()))?;
        world.report.rounds += 1;
        eprintln!("{}", world.report.round_line(fault, starts, recovered));
        if let Some(holds) = world.server()?.resource_usage() {
            world.report.soak.record(begun.elapsed(), holds);
        }
        *world.report.faults.entry(fault.name()).or_default() += 1;
        if world.report.rounds.is_multiple_of(CHECK_INTERVAL_ROUNDS) {
            check_storage(program)?;
            eprintln!("{}", world.report.progress_line(begun.elapsed()));
        }
    }
    for (client, hand) in &mut clients {
        hand.may_reach_provider = false;
        client.finish(hand).map_err(|InvariantViolation(what)| format!("in the end: {what}"))?;
    }
    drop(clients);
    processes.stop();
    check_storage(program)?;
    if world.report.rounds >= ROUNDS_FOR_FULL_COVERAGE {
        world.report.calls.check_coverage(&tools)?;
    }
    // Without faults one server runs from beginning to end, and its memory must not grow. A few fault-free rounds only
    // exercise the clients and are not a soak test.
    let is_soak = faults == [Fault::Calm] && begun.elapsed() >= MIN_SOAK;
    if let (true, Some(growth)) = (is_soak, world.report.soak.growth()) {
        return Err(growth);
    }
    let log = std::fs::read_to_string(program.log()).unwrap_or_default();
    // A thread that cannot start for lack of memory is not a bug in the program.
    let is_fault = |line: &&str| {
        line.contains("panicked") || (line.contains("panic; set `log.level") && !line.contains("/std/src/sys/"))
    };
    match log.lines().find(is_fault) {
        Some(line) => Err(format!("something panicked: {line}")),
        None => Ok(()),
    }
}

/// One round: clients run, a fault is injected, the server becomes idle, and every client checks its own data.
fn round(
    clients: &mut [(Box<dyn ChaosClient>, ClientContext)],
    processes: &StdioPool,
    fault: Fault,
    world: &mut FaultContext,
    chance: &mut SeededRng,
) -> Result<RecoveryTimes, String> {
    let over = AtomicBool::new(fault.is_exclusive());
    if fault.is_exclusive() {
        processes.stop();
    }
    for (_, hand) in clients.iter_mut() {
        hand.conditions = fault.conditions();
        hand.may_reach_provider = fault.may_reach_provider();
    }
    let broken: Mutex<Option<String>> = Mutex::new(None);
    let struck = std::thread::scope(|scope| {
        for (client, hand) in clients.iter_mut() {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if let Err(InvariantViolation(what)) = client.step(hand) {
                        over.store(true, Ordering::Relaxed);
                        *broken.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(what);
                    }
                }
            });
        }
        std::thread::sleep(chance.between(Duration::from_millis(100), Duration::from_millis(1200)));
        let struck = fault.inject(world, chance).and_then(|()| {
            let healed = Instant::now();
            world.server()?.wait_for_answer()?;
            Ok(healed.elapsed())
        });
        std::thread::sleep(chance.between(Duration::ZERO, Duration::from_millis(300)));
        over.store(true, Ordering::Relaxed);
        struck
    });
    if let Some(what) = broken.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(what);
    }
    let answers = struck?;
    let over = Instant::now();
    world.server()?.wait_until_idle()?;
    let rests = over.elapsed();
    for (client, hand) in clients.iter_mut() {
        client.verify(hand).map_err(|InvariantViolation(what)| format!("at rest: {what}"))?;
    }
    let mishaps = world.server()?.internal_errors()?;
    // Without threads or memory some background tasks fail and are restarted. A restarted server counts from zero.
    if mishaps > world.internal_errors && fault != Fault::Limits {
        return Err(format!("background work was begun anew, or a thread did not come back: {mishaps}"));
    }
    world.internal_errors = mishaps;
    Ok(RecoveryTimes { first_answer: answers, idle: rests })
}

/// The program verifies all stored data.
fn check_storage(program: &ProgramConfig) -> Result<(), String> {
    match program.run(&["knowledge", "check", "--json"]).map_err(|error| error.to_string())? {
        (true, _) => Ok(()),
        (false, said) => Err(format!("what is stored is not sound: {said}")),
    }
}

//! Overload test: a thousand clients at twice the sustainable rate.
//!
//! First a few clients measure the sustainable rate. Then a thousand send calls at twice that rate. Admitted calls get
//! the right response, rejected calls get an immediate error with a retry hint, no call is dropped silently, and memory
//! stays bounded. Afterwards throughput is the same as before.

mod load_generator;
mod request_mix;
mod resource_sampler;

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use load_generator::{LoadGenerator, Pace};
use request_mix::RequestMix;
use resource_sampler::ResourceSampler;

use crate::RunResult;
use crate::program::{Binaries, ProgramConfig};
use crate::server::{self, ServerProcess};
use crate::upstream::FakeUpstream;

/// Closed-loop clients that measure the sustainable rate.
const BASELINE_CLIENTS: usize = 8;
const BASELINE_DURATION: Duration = Duration::from_secs(4);
/// Maximum memory growth under load in MiB, independent of the load.
const MAX_MEMORY_GROWTH_MIB: usize = 256;
/// Minimum throughput after the overload relative to before. Half, since machines are noisy.
const MIN_RECOVERED_SHARE: f64 = 0.5;
/// Number of measurements, because unrelated activity on the machine may disturb one.
const RECOVERY_PROBES: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of concurrent clients
    #[arg(long, default_value_t = 1000)]
    clients: usize,
    /// Duration in seconds
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Load as a multiple of the sustainable rate
    #[arg(long, default_value_t = 2.0)]
    times: f64,
    /// Seed of the random generator; the same seed sends the same requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Minimum share of the intended calls that must be sent; otherwise the load was lower than intended.
const MIN_SENT_SHARE: f64 = 0.9;
/// Alternatively, clients spend at least this share of the time waiting for responses, so that few could send more.
const MIN_WAITING_SHARE: f64 = 0.5;
/// Maximum share of calls closed without a response: connections over the limit.
const MAX_CLOSED_SHARE: f64 = 0.05;
/// Runs of at least this many seconds must reach the intended load. A shorter run may be on a machine too busy to send
/// that much; the report mentions it and the run does not fail.
const MIN_JUDGED_SECONDS: u64 = 15;
/// The default limits, and limits that force most calls to be rejected.
const LIMIT_SETTINGS: [(&str, &str); 2] = [
    ("usual limits", ""),
    ("narrow limits", "max_concurrent: 32, max_concurrent_per_caller: 32, max_queued: 64, max_queue_wait: 1s"),
];

pub(crate) fn run(options: &Options, binaries: &Binaries) -> Result<RunResult, String> {
    let mut all = RunResult {
        report: json!({ "seed": options.seed, "clients": options.clients }),
        passed: 0,
        failures: Vec::new(),
    };
    for (name, limits) in LIMIT_SETTINGS {
        let ended = with_limits(options, binaries, limits)?;
        all.report[name] = ended.report;
        all.passed += ended.passed;
        all.failures
            .extend(ended.failures.into_iter().map(|failure| format!("seed {}, {name}: {failure}", options.seed)));
    }
    Ok(all)
}

fn with_limits(options: &Options, binaries: &Binaries, limits: &'static str) -> Result<RunResult, String> {
    let in_words = |error: std::io::Error| error.to_string();
    let folder = tempfile::Builder::new().prefix("corbie-load-").tempdir().map_err(in_words)?;
    let program = ProgramConfig {
        binary: binaries.corbie.clone(),
        home: folder.path().to_owned(),
        storage: folder.path().join("store"),
        address: server::free_address().map_err(in_words)?,
        limits,
        user: None,
        known_word: None,
        environment: Vec::new(),
    };
    let upstream_address = server::free_address().map_err(in_words)?;
    program.write_settings(upstream_address).map_err(in_words)?;
    let _upstream = FakeUpstream::start(binaries.upstream.clone(), upstream_address).map_err(in_words)?;
    let (server, _) = ServerProcess::start(program)?;
    let questions = RequestMix::prepare(&server, folder.path())?;
    let crowd = LoadGenerator { address: server.address(), requests: &questions, seed: options.seed };

    let before = crowd.run(BASELINE_CLIENTS, BASELINE_DURATION, Pace::ClosedLoop);
    let watch = ResourceSampler::start(&server);
    let rate = before.correct as f64 / BASELINE_DURATION.as_secs_f64();
    let lasts = Duration::from_secs(options.seconds);
    let begun = Instant::now();
    let during = crowd.run(options.clients, lasts, Pace::OpenLoop(rate * options.times));
    let took = begun.elapsed();
    let (at_rest, most) = watch.stop();
    let share_of = |after: &load_generator::LoadCounts| after.correct as f64 / before.correct.max(1) as f64;
    let mut after = crowd.run(BASELINE_CLIENTS, BASELINE_DURATION, Pace::ClosedLoop);
    for _ in 1..RECOVERY_PROBES {
        if share_of(&after) < MIN_RECOVERED_SHARE && after.wrong.is_empty() && after.timed_out == 0 {
            after = crowd.run(BASELINE_CLIENTS, BASELINE_DURATION, Pace::ClosedLoop);
        }
    }
    let log = std::fs::read_to_string(server.program.log()).unwrap_or_default();

    let more_memory = most.memory.saturating_sub(at_rest.memory) / 1024;
    let share = share_of(&after);
    let wanted = rate * options.times * lasts.as_secs_f64();
    let waiting = during.wait_time.as_secs_f64() / (options.clients as f64 * took.as_secs_f64());
    let is_loaded = during.sent as f64 >= wanted * MIN_SENT_SHARE || waiting >= MIN_WAITING_SHARE;
    // If the load was not reached in a short run, the checks that depend on it are skipped.
    let counts = is_loaded || options.seconds >= MIN_JUDGED_SECONDS;
    let closed = during.closed as f64 / during.sent.max(1) as f64;
    let (mut passed, mut failures) = (0, Vec::new());
    let mut hold = |holds: bool, what: String| match holds {
        true => passed += 1,
        false => failures.push(what),
    };
    let wrong: Vec<&String> = [&before, &during, &after].into_iter().flat_map(|part| &part.wrong).take(5).collect();
    hold(wrong.is_empty(), format!("wrong answers: {wrong:?}"));
    hold(before.correct > 0 && during.correct > 0 && after.correct > 0, "nobody was answered".to_owned());
    if counts {
        hold(is_loaded, format!("{} calls of {wanted:.0} could be sent: nothing was tried", during.sent));
    }
    if counts && !limits.is_empty() {
        hold(during.refused > 0, "nobody was refused, however narrow the limits".to_owned());
    }
    hold(closed <= MAX_CLOSED_SHARE, format!("{closed:.2} of all calls were cut off without a word"));
    hold(before.timed_out + during.timed_out + after.timed_out == 0, format!("{} calls got no word", during.timed_out));
    hold(more_memory <= MAX_MEMORY_GROWTH_MIB, format!("{more_memory} MiB more under load"));
    hold(share >= MIN_RECOVERED_SHARE, format!("afterwards it does {share:.2} of what it did"));
    hold(!log.contains("panicked"), "something panicked".to_owned());
    let told = json!({
        "sustained_per_second": rate.round(),
        "asked_for_per_second": (rate * options.times).round(),
        "sent": during.sent,
        "share_of_clients_waiting": (waiting * 100.0).round() / 100.0,
        "is_all_that_clients_can_ask": is_loaded,
        "seconds": took.as_secs_f64().round(),
        "right": during.correct,
        "refused": during.refused,
        "closed_without_a_word": during.closed,
        "wrong": during.wrong.len(),
        "without_a_word": during.timed_out,
        "memory_mib": { "at_rest": at_rest.memory / 1024, "most": most.memory / 1024 },
        "open_files": { "at_rest": at_rest.files, "most": most.files },
        "threads": { "at_rest": at_rest.threads, "most": most.threads },
        "share_of_speed_afterwards": (share * 100.0).round() / 100.0,
    });
    Ok(RunResult { report: told, passed, failures })
}

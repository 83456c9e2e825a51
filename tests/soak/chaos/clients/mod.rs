//! Clients that use the server while faults are injected. Each checks its own invariants.

mod chat_client;
mod classify_client;
mod document_client;
mod read_only_client;
mod search_client;
mod taxonomy_client;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::corpus::Corpus;
use crate::call_outcome::{CallOutcome, is_success};
use crate::program::ProgramConfig;
use crate::protocols::{Protocol, ProtocolClients, StdioPool};
use crate::rng::SeededRng;

/// Response timeout of a client. Longer than a pause fault, shorter than a round may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Delay after a rejected call.
const REFUSAL_BACKOFF: Duration = Duration::from_millis(10);
/// Prefix length by which rejections are grouped.
const MAX_REASON_LEN: usize = 80;
/// Timeout that simulates a client killed while it waits.
const DISCONNECT_AFTER: Duration = Duration::from_millis(3);

/// An invariant violation seen by a client. It ends the run.
#[derive(Debug)]
pub(crate) struct InvariantViolation(pub(crate) String);

pub(crate) type CheckResult<T = ()> = Result<T, InvariantViolation>;

pub(crate) trait ChaosClient: Send {
    /// Performs one operation.
    fn step(&mut self, with: &mut ClientContext) -> CheckResult;

    /// Called once the server is idle: resolves in-doubt operations and checks that every acknowledged write is
    /// present.
    fn verify(&mut self, with: &mut ClientContext) -> CheckResult;

    /// Called at the end of the run, when even slow recoveries must have completed.
    fn finish(&mut self, _: &mut ClientContext) -> CheckResult {
        Ok(())
    }
}

/// Equipment of a client: all transports, a random generator and call counters.
pub(crate) struct ClientContext {
    pub(crate) rng: SeededRng,
    protocols: ProtocolClients,
    pub(crate) counts: CallCounts,
    /// The current test condition.
    pub(crate) conditions: Conditions,
    /// Whether the current fault may affect the provider.
    pub(crate) may_reach_provider: bool,
}

/// Test condition, which determines the acceptable responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conditions {
    /// No fault: every call must succeed.
    Healthy,
    /// A fault is active: calls may be rejected or lost, but the server must not report an internal error.
    Faulty,
    /// The server lacks a resource: operations may fail if the error gives the reason.
    ResourceStarved,
}

/// Counts of call outcomes.
#[derive(Debug, Default, Clone)]
pub(crate) struct CallCounts {
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    pub(crate) lost: u64,
    /// Documents compared in full.
    pub(crate) compared: u64,
    /// Searches for words of dead versions, which correctly found nothing.
    pub(crate) dead_version_searches: u64,
    /// Reasons of rejected and lost calls with their counts.
    pub(crate) refusals: BTreeMap<String, u64>,
    /// Successful calls per tool and transport.
    pub(crate) successes: BTreeMap<(String, &'static str), u64>,
}

impl CallCounts {
    pub(crate) fn add(&mut self, other: &CallCounts) {
        self.answered += other.answered;
        self.refused += other.refused;
        self.lost += other.lost;
        self.compared += other.compared;
        self.dead_version_searches += other.dead_version_searches;
        for (why, times) in &other.refusals {
            *self.refusals.entry(why.clone()).or_default() += times;
        }
        for (call, times) in &other.successes {
            *self.successes.entry(call.clone()).or_default() += times;
        }
    }

    /// Successful calls per tool, by transport.
    pub(crate) fn table(&self) -> BTreeMap<&str, String> {
        let mut table: BTreeMap<&str, String> = BTreeMap::new();
        for ((tool, face), times) in &self.successes {
            let row = table.entry(tool).or_default();
            *row += &format!("{}{face} {times}", if row.is_empty() { "" } else { ", " });
        }
        table
    }

    /// Every tool has succeeded over some transport, and every transport has carried a successful call.
    pub(crate) fn check_coverage(&self, tools: &[String]) -> Result<(), String> {
        let tool = tools.iter().find(|tool| !self.successes.keys().any(|(done, _)| done == *tool)).map(String::as_str);
        let face =
            Protocol::all().map(Protocol::name).find(|face| !self.successes.keys().any(|(_, done)| done == face));
        match tool.or(face) {
            Some(missing) => Err(format!("{missing} never did what was wanted: {:?}", self.table())),
            None => Ok(()),
        }
    }

    fn record_answered(&mut self, tool: &str, face: &'static str, said: &Value) {
        self.answered += 1;
        if is_success(said) {
            *self.successes.entry((tool.to_owned(), face)).or_default() += 1;
        }
    }
}

/// Outcome of a call that does not end the run.
#[derive(Debug)]
pub(crate) enum CallResult {
    Answered(Value),
    /// The call had no effect.
    Refused,
    /// Whether the call had an effect is unknown.
    Lost,
}

/// Metadata of a call for the counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallInfo<'a> {
    pub(crate) tool: &'a str,
    pub(crate) protocol: &'static str,
    /// The client dropped the call immediately.
    pub(crate) is_disconnected: bool,
}

impl ClientContext {
    /// Calls a tool over a random transport; occasionally simulates a disconnecting client.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> CheckResult<CallResult> {
        let kind = Protocol::random(&mut self.rng);
        let is_cut_off = self.rng.one_in(25);
        let outcome =
            self.protocols.call(kind, tool, arguments, if is_cut_off { DISCONNECT_AFTER } else { RESPONSE_TIMEOUT });
        self.record(CallInfo { tool, protocol: kind.name(), is_disconnected: is_cut_off }, outcome)
    }

    pub(crate) fn record(&mut self, call: CallInfo, outcome: CallOutcome) -> CheckResult<CallResult> {
        let CallInfo { tool, protocol: face, is_disconnected: is_cut_off } = call;
        let broken = |what: &str| Err(InvariantViolation(format!("{tool} over {face}: {what}")));
        let is_good = self.conditions == Conditions::Healthy;
        match outcome {
            CallOutcome::Answered(said) if is_good && !is_success(&said) && !may_be_refused_when_healthy(tool) => {
                broken(&format!("refused in good times: {said}"))
            }
            CallOutcome::Answered(said) => {
                self.counts.record_answered(tool, face, &said);
                Ok(CallResult::Answered(said))
            }
            CallOutcome::Refused(why) if is_good && !is_cut_off => broken(&format!("refused in good times: {why}")),
            CallOutcome::Refused(why) => {
                self.counts.refused += 1;
                std::thread::sleep(REFUSAL_BACKOFF);
                *self.counts.refusals.entry(normalize_reason(&why)).or_default() += 1;
                Ok(CallResult::Refused)
            }
            CallOutcome::Failed(why) if self.conditions == Conditions::ResourceStarved && states_a_reason(&why) => {
                self.counts.refused += 1;
                *self.counts.refusals.entry(format!("failed: {}", normalize_reason(&why))).or_default() += 1;
                Ok(CallResult::Lost)
            }
            CallOutcome::Failed(why) => broken(&format!("it failed itself: {why}")),
            CallOutcome::Lost(why) if is_good && !is_cut_off => broken(&format!("no answer in good times: {why}")),
            CallOutcome::Lost(why) => {
                self.counts.lost += 1;
                *self.counts.refusals.entry(format!("lost: {}", normalize_reason(&why))).or_default() += 1;
                Ok(CallResult::Lost)
            }
            CallOutcome::Invalid(what) => broken(&what),
        }
    }

    /// Calls an idle server, which must reply. A transport may need a second attempt to notice a restart.
    pub(crate) fn call_until_answered(&mut self, tool: &str, arguments: &Value) -> CheckResult<Value> {
        let mut last = None;
        let kind = Protocol::random(&mut self.rng);
        for _ in 0..3 {
            match self.protocols.call(kind, tool, arguments, crate::server::RESPONSE_TIMEOUT) {
                CallOutcome::Answered(said) => {
                    self.counts.record_answered(tool, kind.name(), &said);
                    return Ok(said);
                }
                CallOutcome::Invalid(what) => {
                    return Err(InvariantViolation(format!("{tool} over {}: {what}", kind.name())));
                }
                other => last = Some(other),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err(InvariantViolation(format!("over {}: {tool} {arguments} of a program at rest: {last:?}", kind.name())))
    }
}

/// A save by a disconnected client may take effect after the next save has read the version, which is then rejected as
/// stale. No other tool may be rejected without a fault.
fn may_be_refused_when_healthy(tool: &str) -> bool {
    tool == "save_taxonomy"
}

/// Whether the error message names the missing resource.
fn states_a_reason(why: &str) -> bool {
    let message = match serde_json::from_str::<Value>(why) {
        Ok(said) => message_in(&said).unwrap_or_default(),
        Err(_) => why.to_owned(),
    };
    let message = message.to_lowercase();
    ["no room", "disk", "read-only", "open files", "thread", "memory", "temporarily unavailable"]
        .iter()
        .any(|word| message.contains(word))
}

/// Extracts the error message, whose position depends on the transport.
fn message_in(said: &Value) -> Option<String> {
    let places = [&said["message"], &said["error"]["message"], &said["error"]["data"]["message"]];
    places.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// Creates the clients of a run.
pub(crate) fn create_clients(
    count: usize,
    seed: u64,
    program: &ProgramConfig,
    shelf: Corpus,
    processes: &StdioPool,
) -> Vec<(Box<dyn ChaosClient>, ClientContext)> {
    let client = |number: usize| -> Box<dyn ChaosClient> {
        match number % 10 {
            5 => Box::new(read_only_client::ReadOnlyClient::default()),
            6 => Box::new(search_client::SearchClient::new(shelf)),
            // Only one client writes the taxonomy, so its last save determines the contents.
            7 if number == 7 => Box::new(taxonomy_client::TaxonomyClient::new()),
            8 => Box::new(chat_client::ChatClient::new(number, program.address)),
            9 => Box::new(classify_client::ClassifyClient::default()),
            _ => Box::new(document_client::DocumentClient::new(number, program)),
        }
    };
    let hand = |number: usize| ClientContext {
        rng: SeededRng::for_part(seed, &format!("client {number}")),
        protocols: ProtocolClients::new(number, program, processes.clone()),
        counts: CallCounts::default(),
        conditions: Conditions::Healthy,
        may_reach_provider: false,
    };
    (0..count).map(|number| (client(number), hand(number))).collect()
}

/// The rejection text without digits, truncated, so that similar rejections are counted together.
fn normalize_reason(why: &str) -> String {
    why.chars().filter(|letter| !letter.is_ascii_digit()).take(MAX_REASON_LEN).collect()
}

/// Total over all clients.
pub(crate) fn total_counts(clients: &[(Box<dyn ChaosClient>, ClientContext)]) -> CallCounts {
    let mut all = CallCounts::default();
    clients.iter().for_each(|(_, hand)| all.add(&hand.counts));
    all
}

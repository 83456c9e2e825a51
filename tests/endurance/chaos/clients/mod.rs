//! Clients that use the server while faults are injected. Each checks its own invariants.

mod asker;
mod editor;
mod librarian;
mod reader;
mod sorter;
mod visitor;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::shelf::Shelf;
use crate::chance::Chance;
use crate::faces::{Faces, Kind, Processes};
use crate::outcome::{Outcome, is_success};
use crate::program::Program;

/// Response timeout of a client. Longer than a pause fault, shorter than a round may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Delay after a rejected call.
const BREATH: Duration = Duration::from_millis(10);
/// Prefix length by which rejections are grouped.
const LONGEST_KIND: usize = 80;
/// Timeout that simulates a client killed while it waits.
const CUT_OFF: Duration = Duration::from_millis(3);

/// An invariant violation seen by a client. It ends the run.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) String);

pub(crate) type Seen<T = ()> = Result<T, Broken>;

pub(crate) trait Client: Send {
    /// Performs one operation.
    fn step(&mut self, with: &mut Hand) -> Seen;

    /// Called once the server is idle: resolves in-doubt operations and checks that every acknowledged write is
    /// present.
    fn settle(&mut self, with: &mut Hand) -> Seen;

    /// Called at the end of the run, when even slow recoveries must have completed.
    fn end(&mut self, _: &mut Hand) -> Seen {
        Ok(())
    }
}

/// Equipment of a client: all transports, a random generator and call counters.
pub(crate) struct Hand {
    pub(crate) chance: Chance,
    faces: Faces,
    pub(crate) tally: Tally,
    /// The current test condition.
    pub(crate) times: Times,
    /// Whether the current fault may affect the provider.
    pub(crate) may_reach_provider: bool,
}

/// Test condition, which determines the acceptable responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// No fault: every call must succeed.
    Good,
    /// A fault is active: calls may be rejected or lost, but the server must not report an internal error.
    Hard,
    /// The server lacks a resource: operations may fail if the error gives the reason.
    Starved,
}

/// Counts of call outcomes.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) said: u64,
    pub(crate) refused: u64,
    pub(crate) lost: u64,
    /// Documents compared in full.
    pub(crate) compared: u64,
    /// Searches for words of dead versions, which correctly found nothing.
    pub(crate) in_vain: u64,
    /// Reasons of rejected and lost calls with their counts.
    pub(crate) refusals: BTreeMap<String, u64>,
    /// Successful calls per tool and transport.
    pub(crate) done: BTreeMap<(String, &'static str), u64>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.said += other.said;
        self.refused += other.refused;
        self.lost += other.lost;
        self.compared += other.compared;
        self.in_vain += other.in_vain;
        for (why, times) in &other.refusals {
            *self.refusals.entry(why.clone()).or_default() += times;
        }
        for (call, times) in &other.done {
            *self.done.entry(call.clone()).or_default() += times;
        }
    }

    /// Successful calls per tool, by transport.
    pub(crate) fn table(&self) -> BTreeMap<&str, String> {
        let mut table: BTreeMap<&str, String> = BTreeMap::new();
        for ((tool, face), times) in &self.done {
            let row = table.entry(tool).or_default();
            *row += &format!("{}{face} {times}", if row.is_empty() { "" } else { ", " });
        }
        table
    }

    /// Every tool has succeeded over some transport, and every transport has carried a successful call.
    pub(crate) fn nothing_is_missing(&self, tools: &[String]) -> Result<(), String> {
        let tool = tools.iter().find(|tool| !self.done.keys().any(|(done, _)| done == *tool)).map(String::as_str);
        let face = Kind::all().map(Kind::name).find(|face| !self.done.keys().any(|(_, done)| done == face));
        match tool.or(face) {
            Some(missing) => Err(format!("{missing} never did what was wanted: {:?}", self.table())),
            None => Ok(()),
        }
    }

    fn said(&mut self, tool: &str, face: &'static str, said: &Value) {
        self.said += 1;
        if is_success(said) {
            *self.done.entry((tool.to_owned(), face)).or_default() += 1;
        }
    }
}

/// Outcome of a call that does not end the run.
#[derive(Debug)]
pub(crate) enum Came {
    Said(Value),
    /// The call had no effect.
    Refused,
    /// Whether the call had an effect is unknown.
    Lost,
}

/// Metadata of a call for the counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    pub(crate) face: &'static str,
    /// The client dropped the call immediately.
    pub(crate) is_cut_off: bool,
}

impl Hand {
    /// Calls a tool over a random transport; occasionally simulates a disconnecting client.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Seen<Came> {
        let kind = Kind::chosen(&mut self.chance);
        let is_cut_off = self.chance.once_in(25);
        let outcome = self.faces.call(kind, tool, arguments, if is_cut_off { CUT_OFF } else { PATIENCE });
        self.count(Call { tool, face: kind.name(), is_cut_off }, outcome)
    }

    pub(crate) fn count(&mut self, call: Call, outcome: Outcome) -> Seen<Came> {
        let Call { tool, face, is_cut_off } = call;
        let broken = |what: &str| Err(Broken(format!("{tool} over {face}: {what}")));
        let is_good = self.times == Times::Good;
        match outcome {
            Outcome::Said(said) if is_good && !is_success(&said) && !may_be_refused_in_good_times(tool) => {
                broken(&format!("refused in good times: {said}"))
            }
            Outcome::Said(said) => {
                self.tally.said(tool, face, &said);
                Ok(Came::Said(said))
            }
            Outcome::Refused(why) if is_good && !is_cut_off => broken(&format!("refused in good times: {why}")),
            Outcome::Refused(why) => {
                self.tally.refused += 1;
                std::thread::sleep(BREATH);
                *self.tally.refusals.entry(kind(&why)).or_default() += 1;
                Ok(Came::Refused)
            }
            Outcome::Failed(why) if self.times == Times::Starved && states_a_reason(&why) => {
                self.tally.refused += 1;
                *self.tally.refusals.entry(format!("failed: {}", kind(&why))).or_default() += 1;
                Ok(Came::Lost)
            }
            Outcome::Failed(why) => broken(&format!("it failed itself: {why}")),
            Outcome::Lost(why) if is_good && !is_cut_off => broken(&format!("no answer in good times: {why}")),
            Outcome::Lost(why) => {
                self.tally.lost += 1;
                *self.tally.refusals.entry(format!("lost: {}", kind(&why))).or_default() += 1;
                Ok(Came::Lost)
            }
            Outcome::Wrong(what) => broken(&what),
        }
    }

    /// Calls an idle server, which must reply. A transport may need a second attempt to notice a restart.
    pub(crate) fn must(&mut self, tool: &str, arguments: &Value) -> Seen<Value> {
        let mut last = None;
        let kind = Kind::chosen(&mut self.chance);
        for _ in 0..3 {
            match self.faces.call(kind, tool, arguments, crate::server::PATIENCE) {
                Outcome::Said(said) => {
                    self.tally.said(tool, kind.name(), &said);
                    return Ok(said);
                }
                Outcome::Wrong(what) => return Err(Broken(format!("{tool} over {}: {what}", kind.name()))),
                other => last = Some(other),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err(Broken(format!("over {}: {tool} {arguments} of a program at rest: {last:?}", kind.name())))
    }
}

/// A save by a disconnected client may take effect after the next save has read the version, which is then rejected as
/// stale. No other tool may be rejected without a fault.
fn may_be_refused_in_good_times(tool: &str) -> bool {
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
pub(crate) fn all(
    count: usize,
    seed: u64,
    program: &Program,
    shelf: Shelf,
    processes: &Processes,
) -> Vec<(Box<dyn Client>, Hand)> {
    let client = |number: usize| -> Box<dyn Client> {
        match number % 10 {
            5 => Box::new(visitor::Visitor::default()),
            6 => Box::new(reader::Reader::new(shelf)),
            // Only one client writes the taxonomy, so its last save determines the contents.
            7 if number == 7 => Box::new(editor::Editor::new()),
            8 => Box::new(asker::Asker::new(number, program.address)),
            9 => Box::new(sorter::Sorter::default()),
            _ => Box::new(librarian::Librarian::new(number, program)),
        }
    };
    let hand = |number: usize| Hand {
        chance: Chance::of(seed, &format!("client {number}")),
        faces: Faces::new(number, program, processes.clone()),
        tally: Tally::default(),
        times: Times::Good,
        may_reach_provider: false,
    };
    (0..count).map(|number| (client(number), hand(number))).collect()
}

/// The rejection text without digits, truncated, so that similar rejections are counted together.
fn kind(why: &str) -> String {
    why.chars().filter(|letter| !letter.is_ascii_digit()).take(LONGEST_KIND).collect()
}

/// Total over all clients.
pub(crate) fn count(clients: &[(Box<dyn Client>, Hand)]) -> Tally {
    let mut all = Tally::default();
    clients.iter().for_each(|(_, hand)| all.add(&hand.tally));
    all
}

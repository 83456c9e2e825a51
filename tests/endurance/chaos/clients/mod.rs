//! Who uses the program while it is being broken. Each knows what it may rely on, and looks.

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

/// How long a client waits for an answer. Longer than a pause of the program, shorter than a round may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Before somebody who was refused tries the next thing.
const BREATH: Duration = Duration::from_millis(10);
/// How much of a refusal is kept to count it by.
const LONGEST_KIND: usize = 80;
/// A client that is killed while it waits.
const CUT_OFF: Duration = Duration::from_millis(3);

/// What a client saw that must never be. It ends the run.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) String);

pub(crate) type Seen<T = ()> = Result<T, Broken>;

pub(crate) trait Client: Send {
    /// Does one thing.
    fn step(&mut self, with: &mut Hand) -> Seen;

    /// The program has come to rest: whatever was in doubt is looked up, and everything acknowledged has to be there.
    fn settle(&mut self, with: &mut Hand) -> Seen;

    /// The run is over: whatever may take longer than a round has come about.
    fn end(&mut self, _: &mut Hand) -> Seen {
        Ok(())
    }
}

/// What a client works with: all ways to the program, chance, and a count of what became of its calls.
pub(crate) struct Hand {
    pub(crate) chance: Chance,
    faces: Faces,
    pub(crate) tally: Tally,
    /// What the program is being put through.
    pub(crate) times: Times,
    /// Whether it is a fault that may have reached the provider.
    pub(crate) may_reach_provider: bool,
}

/// What the program is being put through, and so what it may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// Nothing: every call is answered.
    Good,
    /// Something breaks: calls are refused or lost, but the program itself does not fail.
    Hard,
    /// It has not what it needs: what it fails at, it may fail at, and says why.
    Starved,
}

/// How many calls ended how.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) said: u64,
    pub(crate) refused: u64,
    pub(crate) lost: u64,
    /// Documents whose whole text was compared.
    pub(crate) compared: u64,
    /// Words of versions that are no more and were searched for in vain.
    pub(crate) in_vain: u64,
    /// Why calls were refused or lost, and how often.
    pub(crate) refusals: BTreeMap<String, u64>,
    /// How often each tool did what was wanted of it, over each face.
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

    /// How often each tool did what was wanted, face by face.
    pub(crate) fn table(&self) -> BTreeMap<&str, String> {
        let mut table: BTreeMap<&str, String> = BTreeMap::new();
        for ((tool, face), times) in &self.done {
            let row = table.entry(tool).or_default();
            *row += &format!("{}{face} {times}", if row.is_empty() { "" } else { ", " });
        }
        table
    }

    /// Each of the tools has done what was wanted, over some face, and each face has carried it for some tool.
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

/// What a call came to, when it was none that ends the run.
#[derive(Debug)]
pub(crate) enum Came {
    Said(Value),
    /// Nothing has changed.
    Refused,
    /// Whether anything has changed is not known.
    Lost,
}

/// A call, for those who count it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    pub(crate) face: &'static str,
    /// The client gave up on it at once.
    pub(crate) is_cut_off: bool,
}

impl Hand {
    /// Calls a tool over one of all faces; now and then as a client that is cut off.
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

    /// Calls a program that is at rest, which has to answer; a face may need a second try to see that it was started anew.
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

/// A save that was cut off may come about after the next one has looked, which is refused then: the version it has
/// changed is not the last any more. Nothing else is.
fn may_be_refused_in_good_times(tool: &str) -> bool {
    tool == "save_taxonomy"
}

/// Whether somebody can tell from its message what was missing.
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

/// The message of an error, wherever a face puts it.
fn message_in(said: &Value) -> Option<String> {
    let places = [&said["message"], &said["error"]["message"], &said["error"]["data"]["message"]];
    places.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// The clients of a run.
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
            // One alone may write the taxonomy: what it saved is what is there.
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

/// What a refusal says without what is different each time, so that like ones are counted together.
fn kind(why: &str) -> String {
    why.chars().filter(|letter| !letter.is_ascii_digit()).take(LONGEST_KIND).collect()
}

/// What became of the calls of all of them.
pub(crate) fn count(clients: &[(Box<dyn Client>, Hand)]) -> Tally {
    let mut all = Tally::default();
    clients.iter().for_each(|(_, hand)| all.add(&hand.tally));
    all
}

//! Who uses the program while it is being broken. Each knows what it may rely on, and looks.

mod asker;
mod editor;
mod librarian;
mod reader;
mod sorter;
mod visitor;

use std::collections::BTreeMap;
use std::time::Duration;

use super::shelf::Shelf;
use crate::chance::Chance;
use crate::faces::{self, Face};
use crate::outcome::Outcome;
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
}

/// What a client works with: a way to the program, chance, and a count of what became of its calls.
pub(crate) struct Hand {
    pub(crate) chance: Chance,
    face: Box<dyn Face>,
    pub(crate) tally: Tally,
}

/// How many calls ended how, by face.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) said: u64,
    pub(crate) refused: u64,
    pub(crate) lost: u64,
    /// Documents whose whole text was compared.
    pub(crate) compared: u64,
    /// Why calls were refused or lost, and how often.
    pub(crate) refusals: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.said += other.said;
        self.refused += other.refused;
        self.lost += other.lost;
        self.compared += other.compared;
        for (why, times) in &other.refusals {
            *self.refusals.entry(why.clone()).or_default() += times;
        }
    }
}

/// What a call came to, when it was none that ends the run.
#[derive(Debug)]
pub(crate) enum Came {
    Said(serde_json::Value),
    Refused,
    Lost,
}

impl Hand {
    pub(crate) fn leave(&mut self) {
        self.face.leave();
    }

    /// Calls a tool; now and then as a client that is cut off.
    pub(crate) fn call(&mut self, tool: &str, arguments: &serde_json::Value) -> Seen<Came> {
        let patience = if self.chance.once_in(25) { CUT_OFF } else { PATIENCE };
        self.call_within(tool, arguments, patience)
    }

    pub(crate) fn call_within(&mut self, tool: &str, arguments: &serde_json::Value, patience: Duration) -> Seen<Came> {
        let outcome = self.face.call(tool, arguments, patience);
        self.count(outcome)
    }

    pub(crate) fn count(&mut self, outcome: Outcome) -> Seen<Came> {
        match outcome {
            Outcome::Said(said) => {
                self.tally.said += 1;
                Ok(Came::Said(said))
            }
            Outcome::Refused(why) => {
                self.tally.refused += 1;
                std::thread::sleep(BREATH);
                *self.tally.refusals.entry(kind(&why)).or_default() += 1;
                Ok(Came::Refused)
            }
            Outcome::Lost(why) => {
                self.tally.lost += 1;
                *self.tally.refusals.entry(format!("lost: {}", kind(&why))).or_default() += 1;
                Ok(Came::Lost)
            }
            Outcome::Wrong(what) => Err(Broken(format!("over {}: {what}", self.face.name()))),
        }
    }

    /// Calls a program that is at rest, which has to answer; a face may need a second try to see that it was started anew.
    pub(crate) fn must(&mut self, tool: &str, arguments: &serde_json::Value) -> Seen<serde_json::Value> {
        let mut last = None;
        for _ in 0..3 {
            match self.face.call(tool, arguments, crate::server::PATIENCE) {
                Outcome::Said(said) => return Ok(said),
                Outcome::Wrong(what) => return Err(Broken(format!("over {}: {what}", self.face.name()))),
                other => last = Some(other),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err(Broken(format!("over {}: {tool} {arguments} of a program at rest: {last:?}", self.face.name())))
    }
}

/// The clients of a run, each over a face of its own. `files` is where documents lie before they are added.
pub(crate) fn all(count: usize, seed: u64, program: &Program, shelf: Shelf) -> Vec<(Box<dyn Client>, Hand)> {
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
        face: faces::of_client(number, program.address, program),
        tally: Tally::default(),
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

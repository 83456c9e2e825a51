//! Texts of the speed measurements, grouped by the method that corbie needs to classify them.

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::corbie_command;

/// The method that decides a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DecidedBy {
    /// The word-based early exit.
    Words,
    Rules,
    /// The transformer.
    Model,
    /// Vote of the nearest examples; not the default of corbie.
    Embedding,
}

/// A text and corbie's result.
#[derive(Debug, Clone)]
pub(super) struct ClassifiedText {
    pub(super) text: &'static str,
    pub(super) category: String,
    pub(super) decided_by: DecidedBy,
}

/// Fewer texts of a kind would not be representative.
const MIN_TEXTS: usize = 4;

/// Short everyday questions of all kinds.
const TEXTS: &[&str] = &[
    "what is 12 * 7?",
    "48 / 6",
    "how much is 15 + 27",
    "calculate 3.5 * 4",
    "100 - 37 = ?",
    "what's 9 times 8",
    "2^10",
    "solve 3x + 5 = 20 for x",
    "what is the derivative of x squared?",
    "how do you find the area of a triangle",
    "simplify the fraction 18/24",
    "what is the square root of 144",
    "explain the quadratic formula with an example",
    "what is the probability of rolling two sixes",
    "how does photosynthesis work in plants",
    "why is the sky blue?",
    "what is the difference between an atom and a molecule",
    "how do vaccines train the immune system",
    "what causes earthquakes",
    "how far away is the nearest galaxy",
    "why do cats purr",
    "what happens inside a black hole",
    "how do i sort a list in python",
    "my laptop does not connect to wifi",
    "what does git rebase do",
    "how do i write a join in sql",
    "which phone has the best camera",
    "how can i speed up my old computer",
    "what is the difference between tcp and udp",
    "explain recursion in javascript",
    "who was the first emperor of rome",
    "when did the second world war end",
    "why did the roman empire fall",
    "what started the french revolution",
    "who built the pyramids in ancient egypt",
    "tell me about the treaty of versailles",
    "how did people keep food fresh before fridges",
    "what should i cook for dinner tonight",
    "recommend a good book for the beach",
    "hello, how are you today?",
    "write a birthday card for my sister",
    "what is a nice name for a puppy",
    "thanks, that was helpful",
    "plan a weekend trip to the mountains",
    "how do i get a coffee stain out of a shirt",
    "is it rude to leave a party early",
    "how long does a letter to spain take",
    "what do bees do in winter",
    "can you turn this idea into something simpler",
    "who invented the thing that keeps time",
    "how tall can a tower of cards get",
    "does a heavy bag fall faster than a light one",
    "what was life like for children a hundred years ago",
    "split the bill of 84 euros between five friends",
];

impl DecidedBy {
    /// Description of such texts.
    pub(super) fn name(self) -> &'static str {
        match self {
            DecidedBy::Words => "words suffice",
            DecidedBy::Rules => "rules settle it",
            DecidedBy::Model => "need the transformer",
            DecidedBy::Embedding => "need the nearest examples",
        }
    }
}

/// Classifies every text once with corbie.
pub(super) fn classify_all() -> Result<Vec<ClassifiedText>> {
    #[derive(Deserialize)]
    struct ClassifyOutput {
        category: String,
        method: DecidedBy,
    }
    let mut command = corbie_command()?;
    command.args(["classify", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start corbie")?;
    // A hundred short lines fit into the pipe buffer, so that no deadlock is possible.
    child.stdin.take().context("it has a stdin")?.write_all(TEXTS.join("\n").as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "`corbie classify` failed: {}", output.status);
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    let said: Vec<ClassifyOutput> =
        lines.map(serde_json::from_str).collect::<Result<_, _>>().context("`corbie classify` said")?;
    ensure!(said.len() == TEXTS.len(), "{} texts, but {} answers", TEXTS.len(), said.len());
    let settled = TEXTS.iter().zip(said).map(|(text, ClassifyOutput { category, method })| ClassifiedText {
        text,
        category,
        decided_by: method,
    });
    Ok(settled.collect())
}

/// The texts decided by this method.
pub(super) fn decided_by(settled: &[ClassifiedText], by: DecidedBy) -> Result<Vec<&ClassifiedText>> {
    let texts: Vec<_> = settled.iter().filter(|text| text.decided_by == by).collect();
    ensure!(texts.len() >= MIN_TEXTS, "the list has only {} texts where {}; add some", texts.len(), by.name());
    Ok(texts)
}

//! The steps of the demo, in order.

use serde::Serialize;
use std::time::Instant;

use super::documents::FOLDER;
use super::output::DemoOutput;
use super::step::{DemoStep, StepResult};
use super::workdir::Workdir;
use crate::cli::knowledge::backend::Backend;

/// A step and its title.
struct ScriptedStep {
    title: &'static str,
    step: DemoStep,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct DemoReport {
    pub(super) steps: Vec<StepReport>,
    pub(super) seconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct StepReport {
    pub(super) title: &'static str,
    /// The equivalent command line.
    pub(super) command: String,
    pub(super) seconds: f64,
    pub(super) result: serde_json::Value,
}

const SCRIPT: [ScriptedStep; 8] = [
    ScriptedStep {
        title: "Add the documents of a small museum: seven files, seven formats",
        step: DemoStep::Add(FOLDER),
    },
    ScriptedStep {
        title: "Search for the passage that answers a question, with file and page",
        step: DemoStep::Search("how many people may be in the lamp room at once"),
    },
    ScriptedStep {
        title: "Search by meaning, with words that the document does not contain",
        step: DemoStep::Search("can another museum borrow the big lens"),
    },
    ScriptedStep {
        title: "Search in an image whose text was recognized by the built-in OCR",
        step: DemoStep::Search("when is the foghorn sounded"),
    },
    ScriptedStep {
        title: "Answer from the documents, with sources (the mock model only repeats the question)",
        step: DemoStep::Ask("who was the first keeper of the light"),
    },
    ScriptedStep {
        title: "Classify a question with the built-in model",
        step: DemoStep::Classify("Why does a glass prism split white light into colours?"),
    },
    ScriptedStep {
        title: "Classify another one, with the model loaded",
        step: DemoStep::Classify("Which emperor came after Augustus?"),
    },
    ScriptedStep {
        title: "Explain the routing of a prompt without sending it",
        step: DemoStep::Explain(
            "Prove that the square root of two is irrational, and explain why the same argument does not work for the square \
             root of four",
        ),
    },
];

/// Runs the steps in order and reports each one.
pub(super) async fn run_script(
    peer: &Backend,
    place: &Workdir,
    teller: &mut DemoOutput<'_>,
) -> Result<DemoReport, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut steps = Vec::with_capacity(SCRIPT.len());
    teller.begin(SCRIPT.len())?;
    for ScriptedStep { title, step } in SCRIPT {
        let command = step.command();
        teller.announce(title, &command)?;
        let started = Instant::now();
        let StepResult { lines, result } = step.run(peer, place).await?;
        let seconds = started.elapsed().as_secs_f64();
        teller.show_result(&lines, seconds)?;
        steps.push(StepReport { title, command, seconds, result });
    }
    Ok(DemoReport { steps, seconds: began.elapsed().as_secs_f64() })
}

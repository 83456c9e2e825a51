//! The steps of the demo, in order.

use serde::Serialize;
use std::time::Instant;

use super::documents::FOLDER;
use super::place::Place;
use super::step::{Done, Step};
use super::teller::Teller;
use crate::cli::knowledge::peer::Peer;

/// A step and its title.
struct Scene {
    title: &'static str,
    step: Step,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) steps: Vec<Told>,
    pub(super) seconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Told {
    pub(super) title: &'static str,
    /// The equivalent command line.
    pub(super) command: String,
    pub(super) seconds: f64,
    pub(super) result: serde_json::Value,
}

const SCENES: [Scene; 8] = [
    Scene { title: "Add the papers of a small museum: seven files, seven formats", step: Step::Add(FOLDER) },
    Scene {
        title: "Find the paragraph that answers a question, with file and page",
        step: Step::Search("how many people may be in the lamp room at once"),
    },
    Scene {
        title: "By what it means, in other words than the document's",
        step: Step::Search("can another museum borrow the big lens"),
    },
    Scene {
        title: "In a picture, too: its words were read by the OCR inside",
        step: Step::Search("when is the foghorn sounded"),
    },
    Scene {
        title: "Answer from the documents, with sources (by a mock: it repeats the question, a real model would answer it)",
        step: Step::Ask("who was the first keeper of the light"),
    },
    Scene {
        title: "Tell what a question is about, by the model inside",
        step: Step::Classify("Why does a glass prism split white light into colours?"),
    },
    Scene {
        title: "Another one, now that the model is loaded",
        step: Step::Classify("Which emperor came after Augustus?"),
    },
    Scene {
        title: "Explain where a prompt would go, and why, before anybody is asked",
        step: Step::Explain(
            "Prove that the square root of two is irrational, and explain why the same argument does not work for the square \
             root of four",
        ),
    },
];

/// Runs the steps in order and reports each one.
pub(super) async fn play(
    peer: &Peer,
    place: &Place,
    teller: &mut Teller<'_>,
) -> Result<Report, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut steps = Vec::with_capacity(SCENES.len());
    teller.begin(SCENES.len())?;
    for Scene { title, step } in SCENES {
        let command = step.command();
        teller.announce(title, &command)?;
        let started = Instant::now();
        let Done { lines, result } = step.take(peer, place).await?;
        let seconds = started.elapsed().as_secs_f64();
        teller.tell(&lines, seconds)?;
        steps.push(Told { title, command, seconds, result });
    }
    Ok(Report { steps, seconds: began.elapsed().as_secs_f64() })
}

//! In-process latency of one text that needs no transformer: `corbie eval` compared with the Python server's own
//! function.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use super::quality::parse;
use super::texts::{self, ClassifiedText, DecidedBy};
use super::{FOLDER, PYTHON, SERVER, corbie_command};
use crate::Effort;
use crate::protocol::median;
use crate::report::{ResultTable, three_digits};

/// Median latency of one text in microseconds, one value per round.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    pub(super) by: DecidedBy,
    texts: usize,
    corbie: Vec<f64>,
    python: Vec<f64>,
}

/// Repetitions of each text in a round.
const REPEATS: usize = 200;

pub(super) fn measure(settled: &[ClassifiedText], effort: Effort) -> Result<Vec<Latency>> {
    [DecidedBy::Words, DecidedBy::Rules]
        .into_iter()
        .map(|by| measure_one(by, &texts::decided_by(settled, by)?, effort))
        .collect()
}

fn measure_one(by: DecidedBy, texts: &[&ClassifiedText], effort: Effort) -> Result<Latency> {
    eprintln!(" in process, {}", by.name());
    let repeated: Vec<&ClassifiedText> = (0..REPEATS).flat_map(|_| texts).copied().collect();
    let (labelled, plain) = (Path::new(FOLDER).join("in-process.jsonl"), Path::new(FOLDER).join("in-process.json"));
    let line = |text: &&ClassifiedText| format!("{}\n", json!({ "text": text.text, "label": text.category }));
    fs::write(&labelled, repeated.iter().map(line).collect::<String>())?;
    fs::write(&plain, json!(repeated.iter().map(|text| text.text).collect::<Vec<_>>()).to_string())?;
    let mut latency = Latency { by, texts: texts.len(), corbie: Vec::new(), python: Vec::new() };
    for _ in 0..effort.rounds {
        let report: Value =
            parse("corbie eval", &corbie_command()?.arg("eval").arg(&labelled).arg("--json").output()?)?;
        let p50 = report["latency_micros"]["p50"].as_f64();
        latency.corbie.push(p50.context("`corbie eval` tells no `latency_micros.p50`")?);
        let python = Command::new(PYTHON).args([SERVER, "--time"]).arg(&plain).output();
        let report: Value = parse(SERVER, &python.context(PYTHON)?)?;
        latency.python.push(report["p50"].as_f64().with_context(|| format!("{SERVER} tells no `p50`"))?);
    }
    Ok(latency)
}

impl Latency {
    pub(super) fn corbie(&self) -> f64 {
        median(self.corbie.iter().copied())
    }

    /// How many times as long Python takes.
    pub(super) fn ratio(&self) -> f64 {
        median(self.python.iter().zip(&self.corbie).map(|(python, corbie)| python / corbie))
    }
}

pub(super) fn table(latencies: &[Latency]) -> ResultTable {
    let mut table = ResultTable::new(
        "In process, without the transformer",
        &["texts", "of them", "corbie p50 µs", "Python p50 µs", "corbie is"],
    );
    for latency in latencies {
        table.rows.push(vec![
            latency.by.name().into(),
            latency.texts.to_string(),
            three_digits(latency.corbie()),
            three_digits(median(latency.python.iter().copied())),
            format!("{:.1}x", latency.ratio()),
        ]);
    }
    table
}

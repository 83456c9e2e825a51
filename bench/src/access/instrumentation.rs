//! Overhead of metrics and audit in the library, which has no switch for them: compares with a copy whose counting and
//! recording functions return immediately.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::protocol::median;
use crate::report::{self, ResultTable};

/// CPU time per call for each run.
#[derive(Debug, Serialize)]
pub(super) struct InstrumentationCost {
    measured_us: Vec<f64>,
    unmeasured_us: Vec<f64>,
}

const PROGRAM: &str = ".tools/bench/target/release/corbie_calls";
/// The same program with the copy of the library.
const UNMEASURED: &str = ".tools/bench/unmeasured/corbie_calls";

/// `None` if the copy could not be built.
pub(super) fn measure_instrumentation(turns: u32) -> Result<Option<InstrumentationCost>> {
    if !Path::new(UNMEASURED).exists() {
        return Ok(None);
    }
    let mut library = InstrumentationCost { measured_us: Vec::new(), unmeasured_us: Vec::new() };
    for number in 0..turns {
        // Alternates the order.
        if number % 2 == 0 {
            library.measured_us.push(run(PROGRAM)?);
            library.unmeasured_us.push(run(UNMEASURED)?);
        } else {
            library.unmeasured_us.push(run(UNMEASURED)?);
            library.measured_us.push(run(PROGRAM)?);
        }
    }
    Ok(Some(library))
}

fn run(program: &str) -> Result<f64> {
    let output = Command::new(program).output().context(program.to_owned())?;
    ensure!(output.status.success(), "{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    std::str::from_utf8(&output.stdout)?.trim().parse().with_context(|| format!("{program} tells microseconds"))
}

impl InstrumentationCost {
    pub(super) fn added_us(&self) -> f64 {
        median(self.differences())
    }

    fn differences(&self) -> impl Iterator<Item = f64> {
        self.measured_us.iter().zip(&self.unmeasured_us).map(|(measured, unmeasured)| measured - unmeasured)
    }
}

pub(super) fn table(library: Option<&InstrumentationCost>) -> ResultTable {
    let mut table = ResultTable::new("Calls within the library", &["library", "CPU µs", "added µs", "middle half µs"]);
    if let Some(library) = library {
        let (low, high) = super::quartiles(&library.differences().collect::<Vec<_>>());
        let cpu = |values: &[f64]| report::three_digits(median(values.iter().copied()));
        let [added, middle] = [format!("{:.2}", library.added_us()), format!("{low:.2} to {high:.2}")];
        table.rows = vec![
            vec!["without counting and recording".into(), cpu(&library.unmeasured_us), String::new(), String::new()],
            vec!["as it is".into(), cpu(&library.measured_us), added, middle],
        ];
    }
    table
}

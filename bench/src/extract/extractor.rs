//! The extractors and their commands.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Extractor {
    Corbie,
    Kreuzberg,
    MarkItDown,
    Pypdfium2,
    Trafilatura,
}

pub(super) const EXTRACTORS: [Extractor; 5] =
    [Extractor::Corbie, Extractor::Kreuzberg, Extractor::MarkItDown, Extractor::Pypdfium2, Extractor::Trafilatura];

/// Has the protocol of the peers; to measure the real command, change only this.
const CORBIE: &str = ".tools/bench/target/release/corbie_extract";
const PYTHON: &str = ".tools/bench/extract-venv/bin/python";
const SCRIPT: &str = "bench/peers/extract.py";

/// Sets the limits, then executes the program.
const LIMIT_SCRIPT: &str = r#"ulimit -c 0 -v "$1" -t "$2" && shift 2 && exec "$@""#;

impl Extractor {
    pub(super) fn name(self) -> &'static str {
        match self {
            Extractor::Corbie => "corbie",
            Extractor::Kreuzberg => "kreuzberg",
            Extractor::MarkItDown => "markitdown",
            Extractor::Pypdfium2 => "pypdfium2",
            Extractor::Trafilatura => "trafilatura",
        }
    }

    pub(super) fn supports(self, format: &str) -> bool {
        match self {
            Extractor::Corbie => true,
            Extractor::Kreuzberg | Extractor::MarkItDown => !matches!(format, "svg" | "jpg" | "png"),
            Extractor::Pypdfium2 => format == "pdf",
            Extractor::Trafilatura => format == "html",
        }
    }

    /// A peer may not be installed.
    pub(super) fn is_installed(self) -> bool {
        self == Extractor::Corbie || Path::new(PYTHON).exists()
    }

    /// One thread if the program can be configured: corbie has one too.
    pub(super) fn command(self, memory_kilobytes: u32, cpu_seconds: u32) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", LIMIT_SCRIPT, "bash", &memory_kilobytes.to_string(), &cpu_seconds.to_string()]);
        match self {
            Extractor::Corbie => command.arg(CORBIE),
            peer => command.args([PYTHON, SCRIPT, peer.name()]),
        };
        command.env("OMP_NUM_THREADS", "1").env("RAYON_NUM_THREADS", "1");
        command
    }
}

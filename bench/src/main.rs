//! Benchmarks of corbie's performance targets, compared with its peers. Started by `bench/run`, which builds and
//! installs the programs; runs in the project's root folder.

mod access;
mod chunk;
mod classify;
mod embed;
mod extract;
mod gateway;
mod http;
mod http_response;
mod knowledge;
mod machine;
mod mcp_servers;
mod multi_instance;
mod ocr;
mod process;
mod process_tree;
mod protocol;
mod report;
mod request;
mod round;
mod slo;
mod stdio;
mod targets;
mod window;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::mcp_servers::McpServer;

/// Command line arguments.
#[derive(Debug, Parser)]
#[command(name = "bench/run")]
pub(crate) struct Args {
    /// Benchmark to run
    #[arg(value_enum)]
    name: BenchName,
    /// Run short rounds to check the harness; the results are not meaningful
    #[arg(long)]
    quick: bool,
    /// Number of rounds per measurement; the median is reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    /// Write the tables to bench/RESULTS.md
    #[arg(long)]
    keep: bool,
    /// Only these servers, separated by commas: those of `protocol` or `gateway`
    #[arg(long, value_delimiter = ',')]
    servers: Vec<String>,
    /// Only workloads whose name contains this text, such as `http, 32`; `access` measures the cost of authentication
    #[arg(long, default_value = "")]
    workloads: String,
    /// Folder with labelled texts for `classify`, with retrieval sets for `chunk`, `knowledge` and `many`, or with
    /// files for `ocr`
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Also measure a million chunks, for `knowledge` and `many`
    #[arg(long)]
    large: bool,
    /// Folder with documents and `reference/`, for `extract`
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BenchName {
    /// Calls per second, latency, CPU and memory of the protocol layer, compared with the official SDKs
    Protocol,
    /// Chunking, compared with text-splitter
    Chunk,
    /// Classification, compared with nearest neighbours, a support-vector machine and a Python server
    Classify,
    /// Sentence embeddings, compared with sentence-transformers and onnxruntime
    Embed,
    /// Text extraction, compared with kreuzberg, markitdown, pypdfium2 and trafilatura
    Extract,
    /// OpenAI gateway, compared with vllm-router, nginx, Portkey, LiteLLM and a bare proxy
    Gateway,
    /// Knowledge base, compared with Chroma and LanceDB
    Knowledge,
    /// Several instances on PostgreSQL, compared with the embedded store, and vectors compared with plain pgvector
    Many,
    /// OCR, compared with Tesseract and RapidOCR
    Ocr,
    /// Performance targets of the contract, N-01 to N-08 and N-13; fails if one is missed
    Slo,
}

/// Duration and number of measurements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: u32,
    pub(crate) warm_up: Duration,
    pub(crate) measure: Duration,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let measured = match args.name {
        name if args.data.is_some() && !name.takes_data() => {
            Err(anyhow::anyhow!("`--data` is for `classify`, `chunk`, `knowledge`, `many` and `ocr`"))
        }
        name if args.large && !matches!(name, BenchName::Knowledge | BenchName::Many) => {
            Err(anyhow::anyhow!("`--large` is for `knowledge` and `many`"))
        }
        name if args.folder.is_some() && name != BenchName::Extract => {
            Err(anyhow::anyhow!("a folder is for `extract`"))
        }
        BenchName::Chunk => chunk::run(&args),
        BenchName::Classify => classify::run(&args),
        BenchName::Protocol => protocol::run(&args),
        BenchName::Embed => embed::run(&args),
        BenchName::Extract => extract::run(&args),
        BenchName::Gateway => gateway::run(&args),
        BenchName::Knowledge => knowledge::run(&args),
        BenchName::Many => multi_instance::run(&args),
        BenchName::Ocr => ocr::run(&args),
        BenchName::Slo => slo::run(&args),
    };
    match measured {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The user's working directory: `bench/run` changes to the project's root.
pub(crate) fn caller_folder() -> PathBuf {
    std::env::var_os("BENCH_STARTED_IN").map(PathBuf::from).unwrap_or_default()
}

impl BenchName {
    fn takes_data(self) -> bool {
        matches!(self, BenchName::Classify | BenchName::Chunk | BenchName::Knowledge | BenchName::Many | BenchName::Ocr)
    }
}

impl Args {
    fn effort(&self) -> Effort {
        let (rounds, warm_up, measure) = if self.quick { (1, 50, 200) } else { (5, 150, 1000) };
        Effort {
            rounds: self.rounds.unwrap_or(rounds),
            warm_up: Duration::from_millis(warm_up),
            measure: Duration::from_millis(measure),
        }
    }
}

impl Effort {
    /// A server with a JIT compiler needs a longer warm-up.
    fn for_server(self, server: McpServer) -> Effort {
        if server.is_slow() { Effort { warm_up: self.warm_up * 4, ..self } } else { self }
    }

    fn describe(self) -> String {
        let rounds = if self.rounds == 1 { "1 round".to_owned() } else { format!("medians of {} rounds", self.rounds) };
        format!("{rounds} of {} ms after a warm-up of {} ms", self.measure.as_millis(), self.warm_up.as_millis())
    }
}

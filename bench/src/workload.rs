//! Workloads: tool, transport and concurrency.

use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// With a handshake and 2025-11-25, with 2026-07-28 in every request, or with a path per method and no protocol
/// envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    Legacy,
    Modern,
    Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Returns the text it was sent, which has this length.
    Echo { bytes: usize },
    /// Takes no arguments and returns 10,000 bytes.
    TenKb,
    /// Returns the category of this text.
    Classify { text: &'static str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) transport: Transport,
    pub(crate) tool: Tool,
    /// Calls in flight on stdio; connections with one call each on HTTP.
    pub(crate) concurrency: usize,
    /// Server and load generator share one core, which leaves the cost of the code: with two cores, the time to wake a
    /// sleeping one dominates a serial call, and depends on the load of the machine.
    pub(crate) one_core: bool,
    /// The eras it is measured in, interleaved.
    pub(crate) eras: &'static [Era],
    /// Also measured on the slow peers.
    pub(crate) includes_slow_peers: bool,
}

const SMALL_ECHO: Tool = Tool::Echo { bytes: 100 };

/// Large payloads have lower concurrency: the bytes keep a server busy, and 64 MB in flight would measure the queues.
pub(crate) const PROTOCOL_WORKLOADS: &[Workload] = &[
    stdio(1, SMALL_ECHO).in_both_eras().with_slow_peers(),
    stdio(1, SMALL_ECHO).on_one_core(),
    stdio(64, SMALL_ECHO).in_both_eras().with_slow_peers(),
    stdio(64, Tool::TenKb),
    stdio(64, echo(10_000)),
    stdio(8, echo(100_000)),
    stdio(4, echo(1_000_000)),
    http(1, SMALL_ECHO).in_both_eras().with_slow_peers(),
    http(32, SMALL_ECHO).in_both_eras().with_slow_peers(),
    http(256, SMALL_ECHO),
    http(32, Tool::TenKb),
    http(32, echo(10_000)),
    http(8, echo(100_000)),
    http(4, echo(1_000_000)),
];

const fn echo(bytes: usize) -> Tool {
    Tool::Echo { bytes }
}

pub(crate) const fn stdio(at_once: usize, tool: Tool) -> Workload {
    Workload {
        transport: Transport::Stdio,
        tool,
        concurrency: at_once,
        one_core: false,
        eras: &[Era::Legacy],
        includes_slow_peers: false,
    }
}

pub(crate) const fn http(at_once: usize, tool: Tool) -> Workload {
    Workload { transport: Transport::Http, ..stdio(at_once, tool) }
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        }
    }
}

impl Era {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
            Era::Rest => "REST",
        }
    }
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Echo { .. } => "echo",
            Tool::TenKb => "ten_kb",
            Tool::Classify { .. } => "classify_text",
        }
    }

    /// The text that a call sends and must return; `TenKb` sends none, `Classify` returns a different text.
    pub(crate) fn text(self) -> String {
        match self {
            // No quotes or escapes: their JSON encoding is a separate measurement.
            Tool::Echo { bytes } => {
                "The quick brown fox jumps over the lazy dog. ".chars().cycle().take(bytes).collect()
            }
            Tool::TenKb => "x".repeat(10_000),
            Tool::Classify { text } => text.to_owned(),
        }
    }

    /// Whether this is a correct answer.
    pub(crate) fn is_correct(self, answer: &str) -> bool {
        match self {
            Tool::Echo { .. } | Tool::TenKb => answer == self.text(),
            Tool::Classify { .. } => serde_json::from_str::<Value>(answer)
                .is_ok_and(|answer| answer["class"].is_u64() && answer["confidence"].is_f64()),
        }
    }

    /// How many bytes a correct reply may differ from the first: a probability can end in a different digit if other
    /// texts are in the same batch.
    pub(crate) fn length_tolerance(self) -> usize {
        match self {
            Tool::Echo { .. } | Tool::TenKb => 0,
            Tool::Classify { .. } => 64,
        }
    }
}

impl Workload {
    const fn in_both_eras(self) -> Workload {
        Workload { eras: &[Era::Legacy, Era::Modern], ..self }
    }

    const fn with_slow_peers(self) -> Workload {
        Workload { includes_slow_peers: true, ..self }
    }

    const fn on_one_core(self) -> Workload {
        Workload { one_core: true, ..self }
    }

    /// `stdio, 64 in flight, echo 100 B`
    pub(crate) fn name(&self) -> String {
        let at_once = match (self.transport, self.concurrency) {
            (Transport::Stdio, 1) if self.one_core => "serial on one core".to_owned(),
            (Transport::Stdio, 1) => "serial".to_owned(),
            (Transport::Stdio, count) => format!("{count} in flight"),
            (Transport::Http, 1) => "1 connection".to_owned(),
            (Transport::Http, count) => format!("{count} connections"),
        };
        let tool = match self.tool {
            Tool::TenKb => "10 kB answer".to_owned(),
            Tool::Classify { .. } => "classify".to_owned(),
            Tool::Echo { bytes } if bytes >= 1_000_000 => format!("echo {} MB", bytes / 1_000_000),
            Tool::Echo { bytes } if bytes >= 1_000 => format!("echo {} kB", bytes / 1_000),
            Tool::Echo { bytes } => format!("echo {bytes} B"),
        };
        format!("{}, {at_once}, {tool}", self.transport.name())
    }
}

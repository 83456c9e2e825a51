//! Token usage of a streaming response: what the provider reports, or an estimate for a stream that was aborted before
//! the report.

use corbie_llm::Delta;
use corbie_llm::chat::Usage;

/// Usage of one stream.
#[derive(Debug)]
pub(super) struct StreamUsage {
    reported: Usage,
    /// The estimated prompt tokens, and one completion token per event.
    estimated: Usage,
}

impl StreamUsage {
    /// `prompt_tokens` is an estimate.
    pub(super) fn new(prompt_tokens: u64) -> StreamUsage {
        let estimated = Usage { prompt: prompt_tokens, ..Usage::default() };
        StreamUsage { reported: Usage::default(), estimated }
    }

    pub(super) fn count_events(&mut self, events: u64) {
        self.estimated.completion += events;
    }

    /// Takes over the usage that the provider reports in these deltas. The last report counts.
    pub(super) fn record(&mut self, deltas: &[Delta]) {
        for delta in deltas {
            if let Delta::Used { usage } = delta {
                self.reported = *usage;
            }
        }
    }

    pub(super) fn reported(&self) -> Usage {
        self.reported
    }

    /// The usage charged for an incomplete stream: a client that disconnects before the report does not get the
    /// tokens for free.
    pub(super) fn charged(&self) -> Usage {
        if self.reported.total() > 0 { self.reported } else { self.estimated }
    }
}

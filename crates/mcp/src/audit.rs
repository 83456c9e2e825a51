//! Who called what, and how it ended (M-98). Never what was said: arguments are kept as a keyed hash only.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::trust::{Caller, TrustLevel, Via};

/// The last calls, oldest first.
#[derive(Debug)]
pub struct AuditLog {
    capacity: usize,
    /// Keyed per process, so that a hash says "the same arguments again" and nothing else. The standard library's would
    /// take a millisecond for a megabyte of arguments.
    hasher: foldhash::quality::RandomState,
    entries: Mutex<VecDeque<AuditEntry>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct AuditEntry {
    /// RFC 3339, UTC.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    pub tool: std::sync::Arc<str>,
    #[serde(serialize_with = "hex")]
    pub arguments_hash: u64,
    pub outcome: AuditOutcome,
    pub trust: TrustLevel,
    pub via: Via,
    pub caller: std::sync::Arc<str>,
    pub duration_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    Success,
    Error,
    Blocked,
}

impl AuditLog {
    pub(crate) fn new(capacity: usize) -> AuditLog {
        AuditLog { capacity, hasher: foldhash::quality::RandomState::default(), entries: Mutex::default() }
    }

    pub(crate) fn record(
        &self,
        tool: &std::sync::Arc<str>,
        arguments: &str,
        caller: &Caller,
        outcome: AuditOutcome,
        duration: Duration,
    ) {
        let entry = AuditEntry {
            time: SystemTime::now(),
            tool: tool.clone(),
            arguments_hash: self.hasher.hash_one(arguments),
            outcome,
            trust: caller.trust,
            via: caller.via,
            caller: caller.identity.clone(),
            duration_us: duration.as_micros().try_into().unwrap_or(u64::MAX),
        };
        // Held for a push and a pop, never across an await.
        let mut entries = self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if entries.len() >= self.capacity {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// The newest `count` entries, newest first.
    pub fn latest(&self, count: usize) -> Vec<AuditEntry> {
        let entries = self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        entries.iter().rev().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn hex<S: serde::Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:016x}"))
}

pub(crate) fn rfc3339<S: serde::Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m98_the_log_is_bounded_and_hides_arguments() {
        let log = AuditLog::new(2);
        let caller = Caller::new(Via::Stdio, "stdio", TrustLevel::Trusted);
        for text in ["first", "second", "second"] {
            log.record(&"echo".into(), text, &caller, AuditOutcome::Success, Duration::from_micros(7));
        }
        let latest = log.latest(10);
        assert_eq!(latest.len(), 2);
        assert_eq!(latest[0].arguments_hash, latest[1].arguments_hash);
        assert!(!serde_json::to_string(&latest).expect("json").contains("second"));
    }
}

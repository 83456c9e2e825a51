//! What is kept of a call, and of what happens beside calls.

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use crate::trace::RequestId;
use crate::trust::{TrustLevel, Via};

/// One call of a tool, of a method a program added, or of a path of its own.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEntry {
    /// RFC 3339, UTC.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    pub request_id: RequestId,
    /// The tool, the method, or the path.
    pub tool: Arc<str>,
    /// None where nobody read them, as for paths.
    #[serde(serialize_with = "hex", skip_serializing_if = "Option::is_none")]
    pub arguments_hash: Option<u64>,
    pub outcome: AuditOutcome,
    pub trust: TrustLevel,
    pub via: Via,
    pub caller: Arc<str>,
    pub duration_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    Success,
    Error,
    Blocked,
}

/// Something that is no call: a stranger turned away, or what the operator did.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEvent {
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// One word, such as `start` or `authentication_failed`.
    pub event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The address it came from, or the name of who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Events of strangers that were not kept before this one, as there were too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// No longer text of an event is kept.
const LONGEST_DETAIL: usize = 256;

impl AuditEvent {
    pub fn new(event: &'static str) -> AuditEvent {
        AuditEvent { time: SystemTime::now(), event, request_id: None, by: None, detail: None, omitted: 0 }
    }

    pub fn by(self, who: impl Into<String>) -> AuditEvent {
        AuditEvent { by: Some(short(who.into())), ..self }
    }

    /// Never a secret, and never what a caller said.
    pub fn detail(self, detail: impl Into<String>) -> AuditEvent {
        AuditEvent { detail: Some(short(detail.into())), ..self }
    }

    pub(crate) fn of(self, request: &RequestId) -> AuditEvent {
        AuditEvent { request_id: Some(request.clone()), ..self }
    }
}

fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_DETAIL));
    text
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn hex<S: serde::Serializer>(hash: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{:016x}", hash.unwrap_or_default()))
}

fn rfc3339<S: serde::Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*time))
}

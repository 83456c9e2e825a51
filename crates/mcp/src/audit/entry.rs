//! Audit log records for calls and events.

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use crate::trace::RequestId;
use crate::trust::{Transport, TrustLevel};

/// One call of a tool, a custom method, or a custom route.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEntry {
    /// RFC 3339, UTC.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    pub request_id: RequestId,
    /// The tool, the method, or the path.
    pub tool: Arc<str>,
    /// `None` where the arguments were not read, as for routes.
    #[serde(serialize_with = "hex", skip_serializing_if = "Option::is_none")]
    pub arguments_hash: Option<u64>,
    pub outcome: AuditOutcome,
    pub trust: TrustLevel,
    pub via: Transport,
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

/// An event that is not a call: a rejected request, or an action of the operator.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEvent {
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// A short identifier, such as `start` or `authentication_failed`.
    pub event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The source address, or the name of the actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Number of rejection events dropped by the rate limit before this one.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// Maximum length of an event's text.
const MAX_DETAIL_LEN: usize = 256;

impl AuditEvent {
    pub fn new(event: &'static str) -> AuditEvent {
        AuditEvent { time: SystemTime::now(), event, request_id: None, by: None, detail: None, omitted: 0 }
    }

    pub fn by(self, who: impl Into<String>) -> AuditEvent {
        AuditEvent { by: Some(truncate(who.into())), ..self }
    }

    /// Must not contain a secret or caller-supplied text.
    pub fn detail(self, detail: impl Into<String>) -> AuditEvent {
        AuditEvent { detail: Some(truncate(detail.into())), ..self }
    }

    pub(crate) fn with_request_id(self, request: &RequestId) -> AuditEvent {
        AuditEvent { request_id: Some(request.clone()), ..self }
    }
}

fn truncate(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_DETAIL_LEN));
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

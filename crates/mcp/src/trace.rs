//! Request ids and W3C Trace Context.
//!
//! Both are untrusted input. An invalid id is replaced, an invalid trace context is ignored; neither causes a request
//! to be rejected.

use std::borrow::Cow;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Serialize, Serializer};

/// The id in every log line, audit entry and HTTP reply of one request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(IdSource);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum IdSource {
    /// Generated here.
    Generated(u64),
    /// Sent by the caller and validated.
    Received(Arc<str>),
}

/// The trace context of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// Never zero.
    id: u128,
    /// The caller's span id; never zero.
    parent: u64,
    flags: u8,
    /// Vendor-specific `tracestate`, in header form.
    state: Option<Arc<str>>,
}

/// The request id and trace context as read by the transport.
#[derive(Debug, Clone)]
pub(crate) struct RequestTrace {
    pub(crate) id: RequestId,
    pub(crate) trace: Option<TraceContext>,
}

tokio::task_local! {
    /// Trace context of the current request.
    static CURRENT: Option<TraceContext>;
}

pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Maximum length of a caller's request id.
const MAX_REQUEST_ID_LEN: usize = 64;
/// `00-<32>-<16>-<2>`.
const TRACEPARENT_LEN: usize = 55;
/// Defined flag bits: sampled, and random trace id.
const KNOWN_FLAGS: u8 = 0b11;
/// Limits of the specification on `tracestate`.
const MAX_TRACESTATE_MEMBERS: usize = 32;
const MAX_TRACESTATE_LEN: usize = 512;

impl RequestId {
    /// A new id: unique in this process, and across processes by a random start value.
    pub(crate) fn new() -> RequestId {
        static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(RANDOM_STATE.hash_one("requests")));
        RequestId(IdSource::Generated(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The caller's id, if it is short and has only safe characters.
    pub(crate) fn from_header(text: &str) -> Option<RequestId> {
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let sane = (1..=MAX_REQUEST_ID_LEN).contains(&text.len()) && text.bytes().all(harmless);
        sane.then(|| RequestId(IdSource::Received(text.into())))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        match &self.0 {
            IdSource::Generated(number) => HeaderValue::from_bytes(&hex(*number)),
            IdSource::Received(text) => HeaderValue::from_str(text),
        }
        .expect("letters, digits and three signs make a header")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IdSource::Generated(number) => out.write_str(str::from_utf8(&hex(*number)).unwrap_or_default()),
            IdSource::Received(text) => out.write_str(text),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TraceContext {
    /// Parses `traceparent`, and `tracestate` if valid.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<TraceContext> {
        let bytes = parent.as_bytes();
        // Later versions may have more fields after another dash.
        let long_enough = match bytes.get(..2)? {
            b"00" => bytes.len() == TRACEPARENT_LEN,
            _ => bytes.len() == TRACEPARENT_LEN || bytes.get(TRACEPARENT_LEN) == Some(&b'-'),
        };
        let version = parse_hex(bytes.get(..2)?)?;
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if !long_enough || !dashes || version == 0xff {
            return None;
        }
        let id = parse_hex(bytes.get(3..35)?)?;
        let parent = u64::try_from(parse_hex(bytes.get(36..52)?)?).ok()?;
        let flags = u8::try_from(parse_hex(bytes.get(53..55)?)?).ok()? & KNOWN_FLAGS;
        let state = state.map(str::trim).filter(|state| is_tracestate(state)).map(Into::into);
        (id != 0 && parent != 0).then_some(TraceContext { id, parent, flags, state })
    }

    /// Parses the trace context from HTTP headers.
    pub fn from_headers(headers: &HeaderMap) -> Option<TraceContext> {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        // Duplicate `traceparent` headers are invalid.
        let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
        let states: Vec<&str> = headers.get_all(TRACESTATE).iter().filter_map(|state| state.to_str().ok()).collect();
        let states = match states.as_slice() {
            [] => None,
            [one] => Some(Cow::Borrowed(*one)),
            several => Some(Cow::Owned(several.join(","))),
        };
        TraceContext::parse(parent.to_str().ok()?, states.as_deref())
    }

    /// The trace context of the current request, for propagation to outgoing requests.
    pub fn current() -> Option<TraceContext> {
        CURRENT.try_with(Clone::clone).ok().flatten()
    }

    /// The trace id in hex.
    pub fn id(&self) -> impl fmt::Display + use<> {
        let id = self.id;
        fmt::from_fn(move |out| write!(out, "{id:032x}"))
    }

    /// The caller's `traceparent`.
    pub fn traceparent(&self) -> impl fmt::Display + use<> {
        let (id, parent, flags) = (self.id, self.parent, self.flags);
        fmt::from_fn(move |out| write!(out, "00-{id:032x}-{parent:016x}-{flags:02x}"))
    }

    /// `traceparent` for an outgoing request: the same trace id with a new span id on each call.
    pub fn child_traceparent(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Zero is not a valid span id.
        let span = RANDOM_STATE.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)).max(1);
        format!("00-{:032x}-{span:016x}-{:02x}", self.id, self.flags)
    }

    /// `tracestate`, to be propagated unchanged.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Adds the trace context to an outgoing request. An existing `traceparent` set by the operator takes precedence.
    pub fn inject(&self, headers: &mut HeaderMap) {
        if headers.contains_key(TRACEPARENT) {
            return;
        }
        if let Ok(parent) = HeaderValue::from_str(&self.child_traceparent()) {
            headers.insert(TRACEPARENT, parent);
        }
        match self.tracestate().map(HeaderValue::from_str) {
            Some(Ok(state)) => drop(headers.insert(TRACESTATE, state)),
            _ => drop(headers.remove(TRACESTATE)),
        }
    }
}

impl RequestTrace {
    /// For a message without headers.
    pub(crate) fn new() -> RequestTrace {
        RequestTrace { id: RequestId::new(), trace: None }
    }

    pub(crate) fn from_headers(headers: &HeaderMap) -> RequestTrace {
        let sent = headers.get(REQUEST_ID_HEADER).and_then(|id| RequestId::from_header(id.to_str().ok()?));
        RequestTrace { id: sent.unwrap_or_else(RequestId::new), trace: TraceContext::from_headers(headers) }
    }
}

/// Runs the future with this trace context as the current one.
pub(crate) fn scope<F: Future>(trace: Option<TraceContext>, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(trace, work)
}

/// Pseudo-random numbers without a system call for each.
static RANDOM_STATE: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);

fn hex(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|at| DIGITS[(number >> (60 - 4 * at)) as usize & 0xf])
}

/// Parses lower-case hex; upper case is invalid in a trace context.
fn parse_hex(text: &[u8]) -> Option<u128> {
    text.iter().try_fold(0u128, |number, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

/// Whether the text is a valid `tracestate` list with unique keys.
fn is_tracestate(text: &str) -> bool {
    // Runs before authentication, so it never reads more than the limit.
    if text.len() > MAX_TRACESTATE_LEN {
        return false;
    }
    let mut keys = Vec::new();
    // Empty members are allowed and ignored.
    let members = text.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty());
    for member in members {
        match member.split_once('=') {
            Some((key, value)) if is_tracestate_key(key) && is_tracestate_value(value) && !keys.contains(&key) => {
                keys.push(key)
            }
            _ => return false,
        }
    }
    (1..=MAX_TRACESTATE_MEMBERS).contains(&keys.len())
}

fn is_tracestate_key(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte);
    let part = |part: &str, longest: usize| (1..=longest).contains(&part.len()) && part.bytes().all(plain);
    let begins = key.bytes().next().is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit());
    begins
        && match key.split_once('@') {
            None => part(key, 256),
            Some((tenant, system)) => {
                part(tenant, 241) && part(system, 14) && system.as_bytes()[0].is_ascii_lowercase()
            }
        }
}

fn is_tracestate_value(value: &str) -> bool {
    let printable = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_goes_on_under_the_same_id_with_spans_of_its_own() {
        let trace = TraceContext::parse(PARENT, Some("vendor=1, other@sys=a b")).expect("valid");
        let (first, second) = (trace.child_traceparent(), trace.child_traceparent());
        assert_ne!(first, second);
        for onward in [&first, &second] {
            assert!(onward.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && onward.ends_with("-01"), "{onward}");
            assert!(!onward.contains("b7ad6b7169203331") && TraceContext::parse(onward, None).is_some(), "{onward}");
        }
        assert_eq!(trace.id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.tracestate(), Some("vendor=1, other@sys=a b"));
    }

    #[test]
    fn what_is_no_trace_is_passed_over() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        for parent in [
            "".to_owned(),
            "00".to_owned(),
            PARENT.to_uppercase(),
            PARENT.replace("00-", "ff-"),
            PARENT.replace(id, &"0".repeat(32)),
            PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            PARENT.replace('-', "_"),
            format!("{PARENT}-more"),
            format!(" {PARENT}"),
            PARENT[..54].to_owned(),
            PARENT.replace("0af", "0ä"),
            format!("01{}x", &PARENT[2..]),
        ] {
            assert_eq!(TraceContext::parse(&parent, None), None, "{parent}");
        }
        assert!(TraceContext::parse(&format!("cc{}-what-comes-later", &PARENT[2..]), None).is_some());
        let flagged = TraceContext::parse(&PARENT.replace("-01", "-ff"), None).expect("valid");
        assert!(flagged.child_traceparent().ends_with("-03"), "flags without a meaning are not sent on");
    }

    #[test]
    fn a_state_that_is_not_valid_is_left_out_and_the_trace_stays() {
        let many: String = (0..33).map(|number| format!("k{number}=v,")).collect();
        for state in ["", "novalue", "Key=1", "a=1,a=2", "a=1=2", "a=\n", &"a".repeat(600), &many, "@b=1", "a@=1"] {
            let trace = TraceContext::parse(PARENT, Some(state)).expect("the parent is valid");
            assert_eq!(trace.tracestate(), None, "{state}");
        }
    }

    #[test]
    fn only_short_and_harmless_ids_are_taken_from_callers() {
        for text in ["a", "req-1.2_3", &"x".repeat(64)] {
            assert_eq!(RequestId::from_header(text).expect("sane").to_string(), text);
        }
        for text in ["", "a b", "a\nb", "ä", "a\"", &"x".repeat(65)] {
            assert_eq!(RequestId::from_header(text), None, "{text}");
        }
        let (one, other) = (RequestId::new(), RequestId::new());
        assert!(one != other && one.to_string().len() == 16, "{one} {other}");
        assert_eq!(one.header().to_str().ok(), Some(one.to_string().as_str()));
    }

    /// Validation runs before authentication.
    #[test]
    fn s10_a_state_without_end_takes_no_time() {
        let members: String = (0..400_000).map(|number| format!("k{number}=v,")).collect();
        assert!(!is_tracestate(&members));
    }
}

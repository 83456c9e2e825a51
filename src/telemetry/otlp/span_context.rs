//! Span context as in W3C Trace Context: trace id, span id, parent and sampling.

/// The context of one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) parent_span_id: Option<u64>,
    /// The parent is in another process.
    pub(super) is_parent_remote: bool,
    /// The span and its descendants are exported.
    pub(super) sampled: bool,
}

/// The `sampled` bit of the flags.
const SAMPLED: u8 = 1;

impl SpanContext {
    /// A span without a parent, in a new trace.
    pub(super) fn root(ratio: f64) -> SpanContext {
        let trace = u128::from(random()) << 64 | u128::from(random());
        SpanContext::in_trace(trace, ratio)
    }

    /// A child of another span of this process.
    pub(super) fn child_of(parent: &SpanContext) -> SpanContext {
        SpanContext { span_id: random(), parent_span_id: Some(parent.span_id), is_parent_remote: false, ..*parent }
    }

    /// A child of the caller's span, given as `traceparent`. The caller decides on sampling.
    pub(super) fn from_traceparent(traceparent: &str) -> Option<SpanContext> {
        let mut parts = traceparent.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may have more fields, version `00` may not; version `ff` is invalid.
        if version.len() != 2 || version == "ff" || (version == "00" && parts.next().is_some()) || flags.len() != 2 {
            return None;
        }
        let (trace, parent) = (trace_id(trace)?, hex::<16>(parent)?);
        let (flags, parent) = (hex::<2>(flags)?, u64::try_from(parent).ok().filter(|parent| *parent != 0)?);
        let sampled = flags & u128::from(SAMPLED) != 0;
        Some(SpanContext {
            trace_id: trace,
            span_id: random(),
            parent_span_id: Some(parent),
            is_parent_remote: true,
            sampled,
        })
    }

    /// The first span of this process in a trace with a given id.
    pub(super) fn in_trace(trace: u128, ratio: f64) -> SpanContext {
        // Sampling depends on the trace id only, so every process with the same ratio makes the same decision.
        let drawn = (trace as u64) >> 1;
        let sampled = ratio >= 1.0 || (drawn as f64) < ratio * (1_u64 << 63) as f64;
        // A trace id of 0 means that the system has no randomness, and then span ids are 0 too.
        SpanContext {
            trace_id: trace,
            span_id: random(),
            parent_span_id: None,
            is_parent_remote: false,
            sampled: sampled && trace != 0,
        }
    }

    /// OTLP span flags: the trace flags, the value of `is_remote`, and the bit that marks it as present.
    pub(super) fn flags(&self) -> u32 {
        const KNOWN: u32 = 0x100;
        const REMOTE: u32 = 0x200;
        u32::from(SAMPLED) | KNOWN | if self.is_parent_remote { REMOTE } else { 0 }
    }
}

/// Parses a trace id.
pub(super) fn trace_id(text: &str) -> Option<u128> {
    hex::<32>(text).filter(|id| *id != 0)
}

/// Exactly `DIGITS` lower-case hexadecimal digits.
fn hex<const DIGITS: usize>(text: &str) -> Option<u128> {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (text.len() == DIGITS && digits).then(|| u128::from_str_radix(text, 16).ok())?
}

/// A random id; 0, which is invalid as an id, if the system has no randomness.
fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a10_a_span_belongs_below_the_one_its_caller_names() {
        let place = SpanContext::from_traceparent(&format!("00-{TRACE}-00f067aa0ba902b7-01")).unwrap();
        assert_eq!(
            (place.trace_id, place.parent_span_id),
            (0x4bf92f3577b34da6a3ce929d0e0e4736, Some(0x00f067aa0ba902b7))
        );
        assert!(place.sampled && place.is_parent_remote);
        let inner = SpanContext::child_of(&place);
        assert_eq!(
            (inner.trace_id, inner.parent_span_id, inner.is_parent_remote),
            (place.trace_id, Some(place.span_id), false)
        );
        assert_ne!(inner.span_id, place.span_id);
        let unsampled = SpanContext::from_traceparent(&format!("00-{TRACE}-00f067aa0ba902b7-00")).unwrap();
        assert!(!unsampled.sampled && !SpanContext::child_of(&unsampled).sampled);
        assert!(SpanContext::from_traceparent(&format!("cc-{TRACE}-00f067aa0ba902b7-01-more")).is_some());
    }

    #[test]
    fn a10_what_is_no_traceparent_says_nothing() {
        let zeros = "0".repeat(32);
        for wrong in [
            "",
            "00",
            &format!("00-{TRACE}-00f067aa0ba902b7"),
            &format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            &format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            &format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            &format!("00-{zeros}-00f067aa0ba902b7-01"),
            &format!("00-{TRACE}-0000000000000000-01"),
            &format!("00-{TRACE}-00f067aa0ba902b-01"),
            &format!("00-{TRACE}-00f067aa0ba902b7-1"),
            &format!("00-{TRACE}-00f067aa0ba902b7-+1"),
        ] {
            assert_eq!(SpanContext::from_traceparent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a10_the_share_of_traces_is_about_what_was_asked_for() {
        let sampled = |ratio| (0..1000).filter(|_| SpanContext::root(ratio).sampled).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 1000));
        assert!((300..700).contains(&sampled(0.5)));
    }
}

//! Where a span belongs: which trace, which span, and below which other one, as W3C Trace Context numbers them.

/// The place of one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) parent: Option<u64>,
    /// The parent is in another process.
    pub(super) remote: bool,
    /// It is sent, and what is below it.
    pub(super) sampled: bool,
}

/// The lowest bit of the flags.
const SAMPLED: u8 = 1;

impl Place {
    /// Below nothing.
    pub(super) fn root(ratio: f64) -> Place {
        let trace = u128::from(random()) << 64 | u128::from(random());
        Place::in_trace(trace, ratio)
    }

    /// Below another span of this process.
    pub(super) fn below(parent: &Place) -> Place {
        Place { span: random(), parent: Some(parent.span), remote: false, ..*parent }
    }

    /// Below the span of a caller, who says it with a `traceparent` and decides whether it is sent.
    pub(super) fn below_caller(traceparent: &str) -> Option<Place> {
        let mut parts = traceparent.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may say more, the first one does not; `ff` is none.
        if version.len() != 2 || version == "ff" || (version == "00" && parts.next().is_some()) || flags.len() != 2 {
            return None;
        }
        let (trace, parent) = (trace_id(trace)?, hex::<16>(parent)?);
        let (flags, parent) = (hex::<2>(flags)?, u64::try_from(parent).ok().filter(|parent| *parent != 0)?);
        let sampled = flags & u128::from(SAMPLED) != 0;
        Some(Place { trace, span: random(), parent: Some(parent), remote: true, sampled })
    }

    /// The first span in a trace that somebody else has numbered.
    pub(super) fn in_trace(trace: u128, ratio: f64) -> Place {
        // Every program that is told the same share decides the same about a trace.
        let drawn = (trace as u64) >> 1;
        let sampled = ratio >= 1.0 || (drawn as f64) < ratio * (1_u64 << 63) as f64;
        // A system without chance has no numbers for spans either.
        Place { trace, span: random(), parent: None, remote: false, sampled: sampled && trace != 0 }
    }

    /// As OTLP has it: the flags of the trace, and that it is known whether the parent is elsewhere.
    pub(super) fn flags(&self) -> u32 {
        const KNOWN: u32 = 0x100;
        const REMOTE: u32 = 0x200;
        u32::from(SAMPLED) | KNOWN | if self.remote { REMOTE } else { 0 }
    }
}

/// The number of a trace.
pub(super) fn trace_id(text: &str) -> Option<u128> {
    hex::<32>(text).filter(|id| *id != 0)
}

/// Exactly so many digits, none of them a capital.
fn hex<const DIGITS: usize>(text: &str) -> Option<u128> {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (text.len() == DIGITS && digits).then(|| u128::from_str_radix(text, 16).ok())?
}

/// Zero, which numbers nothing, where the system has no chance to give.
fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a10_a_span_belongs_below_the_one_its_caller_names() {
        let place = Place::below_caller(&format!("00-{TRACE}-00f067aa0ba902b7-01")).unwrap();
        assert_eq!((place.trace, place.parent), (0x4bf92f3577b34da6a3ce929d0e0e4736, Some(0x00f067aa0ba902b7)));
        assert!(place.sampled && place.remote);
        let inner = Place::below(&place);
        assert_eq!((inner.trace, inner.parent, inner.remote), (place.trace, Some(place.span), false));
        assert_ne!(inner.span, place.span);
        let unsampled = Place::below_caller(&format!("00-{TRACE}-00f067aa0ba902b7-00")).unwrap();
        assert!(!unsampled.sampled && !Place::below(&unsampled).sampled);
        assert!(Place::below_caller(&format!("cc-{TRACE}-00f067aa0ba902b7-01-more")).is_some());
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
            assert_eq!(Place::below_caller(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a10_the_share_of_traces_is_about_what_was_asked_for() {
        let sampled = |ratio| (0..1000).filter(|_| Place::root(ratio).sampled).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 1000));
        assert!((300..700).contains(&sampled(0.5)));
    }
}

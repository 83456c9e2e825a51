//! Parses `Retry-After` in all its forms.

use std::time::{Duration, SystemTime};

use super::ResponseHead;

/// Upper bound of a wait. It keeps additions from overflowing.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The wait requested by the response headers: `retry-after-ms`, or `retry-after` as seconds or as a date.
///
/// `retry-after-ms` takes precedence: servers that send both round the other value up.
pub fn from_head(head: ResponseHead<'_>) -> Option<Duration> {
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(number).map(|number| duration(number / 1000.0));
    milliseconds.or_else(|| {
        let text = text("retry-after")?;
        seconds(text).or_else(|| until(text, head.received_at))
    })
}

/// Seconds as text, with or without a fraction and a unit: `30`, `0.5`, `3.5s`.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    number(text.strip_suffix('s').unwrap_or(text)).map(duration)
}

/// The time until a date; zero for a date in the past.
fn until(date: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(date).ok()?;
    Some(date.duration_since(now).unwrap_or_default().min(MAX_WAIT))
}

/// Digits and a decimal point only. Other forms that Rust parses as a number (`inf`, `nan`, `-1`, `1e9`) are not a
/// valid wait.
fn number(text: &str) -> Option<f64> {
    let fits = text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    fits.then(|| text.parse().ok()).flatten()
}

fn duration(seconds: f64) -> Duration {
    // A value that overflows `Duration` is a very long wait, not an absent one.
    Duration::try_from_secs_f64(seconds).unwrap_or(MAX_WAIT).min(MAX_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-10-21 07:28:00, a Wednesday.
    const NOW: u64 = 1_445_412_480;

    fn check(headers: &[(&'static str, &'static str)], expected: Option<Duration>) {
        let map = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)));
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
        let head =
            ResponseHead { status: http::StatusCode::TOO_MANY_REQUESTS, headers: &map.collect(), received_at: at };
        assert_eq!(from_head(head), expected, "{headers:?}");
    }

    #[test]
    fn a_wait_is_read_in_every_form() {
        let millis = |number| Some(Duration::from_millis(number));
        check(&[], None);
        check(&[("retry-after", "30")], millis(30_000));
        check(&[("retry-after", " 0.25 ")], millis(250));
        check(&[("retry-after", "3.5s")], millis(3_500));
        check(&[("retry-after", "0")], millis(0));
        check(&[("retry-after-ms", "1500")], millis(1_500));
        check(&[("retry-after-ms", "1500"), ("retry-after", "2")], millis(1_500));
        check(&[("retry-after-ms", "soon"), ("retry-after", "2")], millis(2_000));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT")], millis(90_000));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")], millis(0));
    }

    #[test]
    fn nonsense_is_no_wait() {
        for text in ["", "soon", "-1", "inf", "nan", "1e9", ".", "1.2.3", "s", "Wed, 99 Oct 2015 07:28:00 GMT"] {
            check(&[("retry-after", text)], None);
        }
    }

    #[test]
    fn a_wait_too_long_to_count_is_long() {
        check(&[("retry-after", "99999999999999999999999999")], Some(MAX_WAIT));
        check(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")], Some(MAX_WAIT));
    }
}

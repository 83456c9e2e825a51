//! Timestamps: stored as milliseconds since 1970, shown as RFC 3339 in UTC (K-06).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MILLIS_PER_DAY: i64 = 24 * 3600 * 1000;

pub fn now() -> i64 {
    to_millis(SystemTime::now())
}

pub fn to_millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
    }
}

pub fn from_millis(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.max(0).unsigned_abs())
}

pub fn to_rfc3339(millis: i64) -> String {
    humantime::format_rfc3339_seconds(from_millis(millis)).to_string()
}

/// First and last millisecond that a text denotes; a date denotes the whole day. `None` for an invalid date.
pub fn parse_range(text: &str) -> Option<(i64, i64)> {
    let text = text.trim();
    if text.len() == "2025-01-31".len() {
        let first = parse_timestamp(&format!("{text}T00:00:00Z"))?;
        return Some((first, first + MILLIS_PER_DAY - 1));
    }
    let at = parse_timestamp(text)?;
    // A time without a fraction denotes the whole second.
    Some((at, if text.contains('.') { at } else { at + 999 }))
}

/// Also accepts times with an offset, such as `2025-01-31T12:00:00+01:00`.
fn parse_timestamp(text: &str) -> Option<i64> {
    if !text.is_ascii() {
        return None;
    }
    let offset = text.len().checked_sub(6).filter(|at| matches!(text.as_bytes()[*at], b'+' | b'-') && *at > 10);
    let (utc, ahead) = match offset {
        Some(at) => {
            let (time, offset) = text.split_at(at);
            let (hours, minutes) = offset[1..].split_once(':')?;
            let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
            if !(0..24).contains(&hours) || !(0..60).contains(&minutes) {
                return None;
            }
            let sign = if offset.starts_with('-') { -1 } else { 1 };
            (format!("{time}Z"), sign * (hours * 60 + minutes) * 60 * 1000)
        }
        None => (text.to_owned(), 0),
    };
    // humantime rejects dates before 1970 and accepts the 31st of any month, so it only parses the time.
    let (day, time) = utc.split_at_checked("2025-01-31".len())?;
    let at = humantime::parse_rfc3339_weak(&format!("1970-01-01{time}")).ok()?;
    Some(days_since_epoch(day)? * MILLIS_PER_DAY + to_millis(at) - ahead)
}

/// Days since 1970 of a date such as `2025-01-31`. `None` for an invalid date.
fn days_since_epoch(day: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| {
        let digits = day.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let (year, month, of_month) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = lengths.get(..usize::try_from(month).ok()?.checked_sub(1)?)?;
    let has_day = (1..=*lengths.get(before.len())?).contains(&of_month);
    let dashes = day.as_bytes().get(4) == Some(&b'-') && day.as_bytes().get(7) == Some(&b'-');
    // Number of leap days before this year, counted from year 0.
    let leaps = |year: i64| match year {
        0 => 0,
        year => (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1,
    };
    let years = (year - 1970) * 365 + leaps(year) - leaps(1970);
    (has_day && dashes).then(|| years + before.iter().sum::<i64>() + of_month - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k06_times_are_shown_as_rfc_3339_in_utc() {
        assert_eq!(to_rfc3339(1_761_472_800_000), "2025-10-26T10:00:00Z");
        assert_eq!(parse_range("2025-10-26T10:00:00Z"), Some((1_761_472_800_000, 1_761_472_800_999)));
        assert_eq!(parse_range("2025-10-26T11:00:00+01:00"), parse_range("2025-10-26T10:00:00Z"));
        assert_eq!(parse_range("2025-10-26"), Some((1_761_436_800_000, 1_761_523_199_999)));
    }

    #[test]
    fn k53_days_that_are_not_there_are_no_dates() {
        for text in [
            "2025-02-30",
            "2025-13-01",
            "2025-00-10",
            "2025-01-32",
            "25-01-01",
            "yesterday",
            "",
            "2025-01-3\u{661}",
            "2025-01-01T25:00:00Z",
            "2025-04-31",
            "2023-02-29",
            "1900-02-29",
            "2025-00-00",
            "2025/01/01",
            "2025-01-01T12:00:00+99:00",
            "2025-01-01T12:00:00+-1:00",
        ] {
            assert_eq!(parse_range(text), None, "{text}");
        }
        assert!(parse_range("2024-02-29").is_some());
    }

    #[test]
    fn k53_days_of_any_time_are_dates() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("1900-01-01", -25_567),
            ("2000-03-01", 11_017),
            ("2024-12-31", 20_088),
            ("0000-01-01", -719_528),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(
                parse_range(text),
                Some((days * MILLIS_PER_DAY, days * MILLIS_PER_DAY + MILLIS_PER_DAY - 1)),
                "{text}"
            );
        }
    }
}

//! Dates and times from serial day numbers.

/// Serial number of the last supported day, 9999-12-31.
pub(super) const MAX_DAY: f64 = 2_958_466.0;
/// Days from the epoch of workbooks to 1970-01-01.
const DAYS_TO_UNIX_EPOCH: i64 = 25_569;
pub(super) const DAYS_TO_1904: f64 = 1462.0;
pub(super) const SECONDS_PER_DAY: i64 = 86_400;

/// Serial days start in 1900 and include the nonexistent 29 February 1900.
pub(super) fn date(day: f64) -> String {
    let whole = day.floor() as i64;
    if whole == 60 {
        return "1900-02-29".to_owned();
    }
    let (year, month, day) = civil(if whole < 60 { whole + 1 } else { whole } - DAYS_TO_UNIX_EPOCH);
    format!("{year:04}-{month:02}-{day:02}")
}

pub(super) fn date_and_time(day: f64) -> String {
    // Half a second before midnight rounds to the next day.
    let seconds = seconds(day);
    let (day, rest) = ((seconds / SECONDS_PER_DAY) as f64, seconds % SECONDS_PER_DAY);
    if rest == 0 { date(day) } else { format!("{} {}", date(day), time(rest)) }
}

pub(super) fn seconds(days: f64) -> i64 {
    (days * SECONDS_PER_DAY as f64).round() as i64
}

pub(super) fn time(seconds: i64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if seconds == 0 { format!("{hours:02}:{minutes:02}") } else { format!("{hours:02}:{minutes:02}:{seconds:02}") }
}

/// Civil date from days since 1970-01-01, computed in 400-year eras that start in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

//! Formats numbers, dates and times.

use std::borrow::Cow;

use super::number_format::{self, NumberFormat, NumberKind};
use crate::ooxml::{number_text, round_to_15_digits};

/// Serial number of the last supported day, 9999-12-31.
const MAX_DAY: f64 = 2_958_466.0;
/// Days from the epoch of workbooks to 1970-01-01.
const DAYS_TO_UNIX_EPOCH: i64 = 25_569;
const DAYS_TO_1904: f64 = 1462.0;
/// In seconds.
const SECONDS_PER_DAY: i64 = 86_400;

/// Formats the raw number of a cell.
pub(super) fn format_number(raw: &str, form: &NumberFormat, from_1904: bool) -> String {
    let raw = raw.trim();
    if *form == number_format::PLAIN {
        return number_text(raw);
    }
    let Ok(number) = raw.parse::<f64>() else { return raw.to_owned() };
    let day = if from_1904 { number + DAYS_TO_1904 } else { number };
    let is_day = (0.0..MAX_DAY).contains(&day);
    match form.shape {
        NumberKind::Date if is_day => date(day),
        // Half a second before midnight rounds to midnight.
        NumberKind::Time if is_day => time(seconds(day.fract()) % SECONDS_PER_DAY),
        NumberKind::DateTime if is_day => date_and_time(day),
        NumberKind::Duration if is_day => time(seconds(number)),
        shape => {
            let plain = match form.decimals {
                decimals if shape == NumberKind::Percent => format!("{}%", decimal(number * 100.0, decimals)),
                None => number_text(raw),
                decimals => decimal(number, decimals),
            };
            let (sign, plain) = plain.strip_prefix('-').map_or(("", plain.as_str()), |plain| ("-", plain));
            format!("{sign}{}{}{}", form.prefix, apply_mask(plain, &form.mask), form.suffix)
        }
    }
}

/// Applies a mask to the digits before the decimal point, from the last digit. Surplus digits come first.
fn apply_mask<'a>(plain: &'a str, mask: &str) -> Cow<'a, str> {
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    if mask.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(plain);
    }
    let mut digits = whole.chars().rev().peekable();
    let mut zeros = mask.chars().filter(|letter| *letter == '0').count();
    let mut backwards = Vec::new();
    for letter in mask.chars().rev() {
        match letter {
            '0' => {
                zeros -= 1;
                backwards.push(digits.next().unwrap_or('0'));
            }
            '#' => backwards.extend(digits.next()),
            between if zeros > 0 || digits.peek().is_some() => backwards.push(between),
            _ => {}
        }
    }
    backwards.extend(digits);
    Cow::Owned(backwards.into_iter().rev().chain(rest.chars()).collect())
}

fn decimal(number: f64, decimals: Option<u8>) -> String {
    match decimals {
        // A larger number has no decimal places, but hundreds of digits.
        Some(places) if number.abs() < 1e15 => format!("{number:.places$}", places = usize::from(places)),
        _ => round_to_15_digits(number),
    }
}

/// Serial days start in 1900 and include the nonexistent 29 February 1900.
fn date(day: f64) -> String {
    let whole = day.floor() as i64;
    if whole == 60 {
        return "1900-02-29".to_owned();
    }
    let (year, month, day) = civil(if whole < 60 { whole + 1 } else { whole } - DAYS_TO_UNIX_EPOCH);
    format!("{year:04}-{month:02}-{day:02}")
}

fn date_and_time(day: f64) -> String {
    // Half a second before midnight rounds to the next day.
    let seconds = seconds(day);
    let (day, rest) = ((seconds / SECONDS_PER_DAY) as f64, seconds % SECONDS_PER_DAY);
    if rest == 0 { date(day) } else { format!("{} {}", date(day), time(rest)) }
}

fn seconds(days: f64) -> i64 {
    (days * SECONDS_PER_DAY as f64).round() as i64
}

fn time(seconds: i64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, code: &str, expected: &str) {
        assert_eq!(format_number(raw, &NumberFormat::parse(code), false), expected, "{raw} as {code}");
    }

    #[test]
    fn numbers_are_shown_as_their_format_asks() {
        check("45107", "yyyy-mm-dd", "2023-06-30");
        check("45107", "[$-409]d\\ mmm\\ yy;@", "2023-06-30");
        check("1", "dd/mm/yy", "1900-01-01");
        check("59", "dd/mm/yy", "1900-02-28");
        check("60", "dd/mm/yy", "1900-02-29");
        check("61", "dd/mm/yy", "1900-03-01");
        check("45107.5", "m/d/yy h:mm", "2023-06-30 12:00");
        check("45107.999999", "m/d/yy h:mm", "2023-07-01");
        check("0.75", "h:mm AM/PM", "18:00");
        check("0.99999999", "h:mm", "00:00");
        check("1.5", "[h]:mm", "36:00");
        check("0.125", "0.0%", "12.5%");
        check("0.1", "0%", "10%");
        check("12.5", "0.00", "12.50");
        check("1234.5", "\"$\"#,##0.00", "$1234.50");
        check("-12.5", "\"$\"#,##0.00_);[Red]\\(\"$\"#,##0.00\\)", "-$12.50");
        check("12.5", "_(\"$\"* #,##0.00_);_(\"$\"* \\(#,##0.00\\)", "$12.50");
        check("7.5", "#,##0.00\\ \"€\"", "7.50 €");
        check("12", "0.0\" kg\"", "12.0 kg");
        check("0.5", "\"about \"0%", "about 50%");
        check("7", "General\" pcs\"", "7 pcs");
        check("5551234", "000\\-0000", "555-1234");
        check("2500000", "$0.0,,\"M\"", "$2500000.0");
        check("5", "\"yes\";\"no\"", "5");
        check("-12.5", "$#,##0.00", "-$12.50");
        check("12.5", "#,##0.00\\ [$€-407]", "12.50 €");
        check("12553", "#,##0", "12553");
        check("0.30000000000000004", "General", "0.3");
        check("1E+20", "General", "1E20");
        check("44772.800000000003", "_ * #,##0_ ", "44772.8");
        check("not a number", "0.00", "not a number");
    }

    #[test]
    fn digits_are_set_as_their_format_asks() {
        check("1234", "00000", "01234");
        check("-7", "000", "-007");
        check("1.5", "000.00", "001.50");
        check("123456789", "000-00-0000", "123-45-6789");
        check("12345", "000-00-0000", "000-01-2345");
        check("5551234567", "\\(###\\)\\ ###-####", "(555) 123-4567");
        check("5551234567", "(###) ###-####", "(555) 123-4567");
        check("5551234", "###-####-###", "5551-234");
        check("12345", "#-###", "12-345");
        check("5551234567", "[<=9999999]###-####;\\(###\\)\\ ###-####", "5551234567");
        check("1234567", "#\\ ##0", "1234567");
        check("1234567", "##\\,##\\,##0", "1234567");
        check("2.5", "# ??/??", "2.5");
        check("1234", "00000%", "123400%");
        check("1234", "000E+00", "1234");
    }

    #[test]
    fn days_may_be_counted_from_1904() {
        assert_eq!(format_number("0", &NumberFormat::parse("yyyy"), true), "1904-01-01");
    }

    #[test]
    fn no_number_is_too_strange() {
        for raw in ["1e308", "-1e308", "NaN", "inf", "-inf", "1e-300", "-1", "99999999999", ""] {
            for code in
                ["yyyy", "h:mm", "0.00", "0%", "[h]", "General", "", "0.000000000000000000000000", "\\", "[", "\""]
            {
                let text = format_number(raw, &NumberFormat::parse(code), false);
                assert!(text.len() < 64, "{raw} as {code}: {text}");
            }
        }
    }
}

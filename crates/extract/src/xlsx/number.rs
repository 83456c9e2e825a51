//! Text of number cells in their number format.

use std::borrow::Cow;

use super::number_format::{self, NumberFormat, NumberKind};
use super::serial_date::{DAYS_TO_1904, MAX_DAY, SECONDS_PER_DAY, date, date_and_time, seconds, time};
use crate::ooxml::{number_text, round_to_15_digits};

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

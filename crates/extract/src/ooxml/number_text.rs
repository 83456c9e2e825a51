//! Number formatting.

/// Formats a number without a number format. Writers store all seventeen digits of binary fractions; the first fifteen
/// are significant.
pub(crate) fn number_text(raw: &str) -> String {
    let digits = raw.bytes().filter(u8::is_ascii_digit).count();
    match raw.parse() {
        Ok(number) if digits > 15 || raw.contains(['e', 'E']) => round_to_15_digits(number),
        // Some programs write `13.0` for 13.
        Ok(_) if raw.contains('.') => raw.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => raw.to_owned(),
    }
}

/// Rounds to at most fifteen digits.
pub(crate) fn round_to_15_digits(number: f64) -> String {
    let rounded: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-9..1e15).contains(&rounded.abs()) { rounded.to_string() } else { format!("{rounded:E}") }
}

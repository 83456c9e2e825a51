//! Numbers as people write them.

/// A number in no special form. Writers print all seventeen digits of binary fractions; fifteen are what was meant.
pub(crate) fn figure(raw: &str) -> String {
    let digits = raw.bytes().filter(u8::is_ascii_digit).count();
    match raw.parse() {
        Ok(number) if digits > 15 || raw.contains(['e', 'E']) => rounded(number),
        // Some programs write `13.0` for what everybody sees as 13.
        Ok(_) if raw.contains('.') => raw.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => raw.to_owned(),
    }
}

/// With fifteen digits at most.
pub(crate) fn rounded(number: f64) -> String {
    let rounded: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-9..1e15).contains(&rounded.abs()) { rounded.to_string() } else { format!("{rounded:E}") }
}

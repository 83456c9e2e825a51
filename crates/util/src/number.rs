//! Number conversion.

/// Widens a number without adding digits: 0.92, not 0.920000017.
pub fn shortest_f64(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        assert_eq!(shortest_f64(0.92f32).to_string(), "0.92");
        assert_eq!(shortest_f64(1.0f32), 1.0);
        assert_eq!(shortest_f64(4.2e-8f32).to_string(), "0.000000042");
    }
}

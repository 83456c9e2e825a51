//! Number formats.
//!
//! Number formats have many features. This module implements the features that change the meaning of a number: date,
//! time and percent, decimals, currency and unit, and digit masks such as postal codes and telephone numbers. Thousands
//! separators are omitted and integers are not rounded: a search finds `12553`, but `12,553` would be two words.

/// A parsed number format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NumberFormat {
    pub(super) shape: NumberKind,
    /// Decimal places; `None` shows all of them.
    pub(super) decimals: Option<u8>,
    /// Text before and after the digits: a currency, a unit.
    pub(super) prefix: String,
    pub(super) suffix: String,
    /// Digit mask before the decimal point, if it is more than a plain number: `0` is always shown, `#` only if there
    /// is a digit, and other characters are literals.
    pub(super) mask: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NumberKind {
    #[default]
    Number,
    Percent,
    Date,
    Time,
    DateTime,
    /// Elapsed hours, which may exceed 24.
    Duration,
}

/// General format without affixes.
pub(super) static PLAIN: NumberFormat = NumberFormat {
    shape: NumberKind::Number,
    decimals: None,
    prefix: String::new(),
    suffix: String::new(),
    mask: String::new(),
};

// === impl ===

impl NumberFormat {
    /// Built-in formats by ID. IDs in between are locale-specific currencies and numbers.
    pub(super) fn built_in(id: u32) -> NumberFormat {
        let (shape, decimals) = match id {
            9 => (NumberKind::Percent, None),
            10 => (NumberKind::Percent, Some(2)),
            14..=17 | 27..=31 | 34..=36 | 50..=58 => (NumberKind::Date, None),
            18..=21 | 32 | 33 | 45 | 47 => (NumberKind::Time, None),
            22 => (NumberKind::DateTime, None),
            46 => (NumberKind::Duration, None),
            2 | 4 | 7 | 8 | 39 | 40 | 43 | 44 => (NumberKind::Number, Some(2)),
            _ => (NumberKind::Number, None),
        };
        NumberFormat { shape, decimals, ..NumberFormat::default() }
    }

    /// Parses a format code. Only the first section is used, which is for positive numbers.
    pub(super) fn parse(code: &str) -> NumberFormat {
        let mut form = NumberFormat::default();
        let mut seen = FormatLetters::default();
        let mut letters = code.chars();
        while let Some(letter) = letters.next() {
            match letter {
                ';' => break,
                '"' => form.side(&seen).extend(letters.by_ref().take_while(|letter| *letter != '"')),
                '\\' => form.side(&seen).extend(letters.next()),
                // Space with the width of the next character.
                '_' => {
                    letters.next();
                    form.side(&seen).push(' ');
                }
                '*' => drop(letters.next()),
                '[' => {
                    let inside: String = letters.by_ref().take_while(|letter| *letter != ']').collect();
                    // The section has a condition.
                    seen.no_mask |= inside.starts_with(['<', '>', '=']);
                    form.brackets(&inside, &seen);
                }
                'G' | 'g' if is_general(letters.as_str()) => {
                    letters.nth(GENERAL.len() - 1);
                    seen.digit = true;
                }
                'E' | 'e' if seen.digit => seen.scientific = true,
                // Between digits it makes a fraction.
                '/' => seen.no_mask = true,
                'y' | 'Y' | 'd' | 'D' | 'e' => seen.date = true,
                'h' | 'H' | 's' | 'S' => seen.time = true,
                'm' | 'M' => seen.month_or_minute = true,
                '%' => form.shape = NumberKind::Percent,
                '.' if !seen.time => {
                    seen.point = true;
                    seen.scaled |= seen.comma;
                }
                ',' if seen.digit => seen.comma = true,
                '0' | '#' | '?' => {
                    // Literals between digits, as in a telephone number, are not affixes.
                    if !seen.point {
                        form.mask.extend(form.suffix.chars().filter(|letter| !matches!(letter, '0' | '#')));
                        form.mask.push(if letter == '0' { '0' } else { '#' });
                    }
                    form.suffix.clear();
                    seen.comma = false;
                    seen.digit = true;
                    seen.places += u8::from(seen.point && seen.places < 15);
                }
                '$' | '€' | '£' | '¥' | '₹' | '₽' | '₩' | ' ' | '-' | '(' | ')' => {
                    form.side(&seen).push(letter)
                }
                _ => {}
            }
        }
        // Literal text without digits would hide the number, and an `M` suffix for millions is wrong after unscaled
        // digits.
        if !seen.digit {
            form.prefix.clear();
        }
        if seen.scaled || seen.comma {
            form.suffix.clear();
        }
        form.prefix.drain(..form.prefix.len() - form.prefix.trim_start().len());
        form.suffix.truncate(form.suffix.trim_end().len());
        form.shape = match (seen.date, seen.time, seen.month_or_minute) {
            _ if form.shape != NumberKind::Number => form.shape,
            (true, true, _) => NumberKind::DateTime,
            (true, false, _) | (false, false, true) => NumberKind::Date,
            (false, true, _) => NumberKind::Time,
            (false, false, false) => NumberKind::Number,
        };
        form.decimals = (seen.places > 0 && !seen.scientific).then_some(seen.places);
        if seen.no_mask || seen.scientific || seen.scaled || seen.comma || form.shape != NumberKind::Number {
            form.mask.clear();
        }
        form.trim_mask();
        form
    }

    /// Removes thousands separators of any kind, and a mask without effect.
    fn trim_mask(&mut self) {
        let parts_thousands = |letter: char| matches!(letter, ',' | '.' | '\'') || letter.is_whitespace();
        if self.mask.chars().all(|letter| matches!(letter, '0' | '#') || parts_thousands(letter)) {
            self.mask.retain(|letter| !parts_thousands(letter));
        }
        let zeros = self.mask.bytes().filter(|letter| *letter == b'0').count();
        let is_plain = zeros < 2 && self.mask.chars().all(|letter| matches!(letter, '0' | '#'));
        if is_plain || self.mask.len() > MAX_MASK_LEN {
            self.mask.clear();
        }
    }

    fn brackets(&mut self, inside: &str, seen: &FormatLetters) {
        if let Some(currency) = inside.strip_prefix('$') {
            self.side(seen).push_str(currency.split('-').next().unwrap_or_default());
        } else if matches!(inside.to_ascii_lowercase().as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss") {
            self.shape = NumberKind::Duration;
        }
    }

    fn side(&mut self, seen: &FormatLetters) -> &mut String {
        if seen.digit { &mut self.suffix } else { &mut self.prefix }
    }
}

/// Numbers have at most 15 digits, with few literals between them.
const MAX_MASK_LEN: usize = 32;

/// The rest of `General` after its first letter.
const GENERAL: &str = "eneral";

fn is_general(rest: &str) -> bool {
    rest.get(..GENERAL.len()).is_some_and(|rest| rest.eq_ignore_ascii_case(GENERAL))
}

/// Characters seen in a format code.
#[derive(Default)]
struct FormatLetters {
    date: bool,
    time: bool,
    month_or_minute: bool,
    digit: bool,
    point: bool,
    /// A comma after the last digit so far. It is a thousands separator if more digits follow, and a scaling otherwise.
    comma: bool,
    /// There was a scaling comma before the decimal point.
    scaled: bool,
    scientific: bool,
    /// A construct that excludes a mask.
    no_mask: bool,
    places: u8,
}

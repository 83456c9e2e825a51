//! Number formats.
//!
//! Number formats have many features. This module implements the features that change the meaning of a number: date,
//! time and percent, decimals, currency and unit, and digit masks such as postal codes and telephone numbers. Thousands
//! separators are omitted and integers are not rounded: a search finds `12553`, but `12,553` would be two words.

/// A parsed number format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) shape: Shape,
    /// Decimal places; `None` shows all of them.
    pub(super) decimals: Option<u8>,
    /// Text before and after the digits: a currency, a unit.
    pub(super) before: String,
    pub(super) after: String,
    /// Digit mask before the decimal point, if it is more than a plain number: `0` is always shown, `#` only if there
    /// is a digit, and other characters are literals.
    pub(super) mask: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Shape {
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
pub(super) static PLAIN: Form =
    Form { shape: Shape::Number, decimals: None, before: String::new(), after: String::new(), mask: String::new() };

// === impl ===

impl Form {
    /// Built-in formats by ID. IDs in between are locale-specific currencies and numbers.
    pub(super) fn built_in(id: u32) -> Form {
        let (shape, decimals) = match id {
            9 => (Shape::Percent, None),
            10 => (Shape::Percent, Some(2)),
            14..=17 | 27..=31 | 34..=36 | 50..=58 => (Shape::Date, None),
            18..=21 | 32 | 33 | 45 | 47 => (Shape::Time, None),
            22 => (Shape::DateTime, None),
            46 => (Shape::Duration, None),
            2 | 4 | 7 | 8 | 39 | 40 | 43 | 44 => (Shape::Number, Some(2)),
            _ => (Shape::Number, None),
        };
        Form { shape, decimals, ..Form::default() }
    }

    /// Parses a format code. Only the first section is used, which is for positive numbers.
    pub(super) fn parse(code: &str) -> Form {
        let mut form = Form::default();
        let mut seen = Letters::default();
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
                '%' => form.shape = Shape::Percent,
                '.' if !seen.time => {
                    seen.point = true;
                    seen.scaled |= seen.comma;
                }
                ',' if seen.digit => seen.comma = true,
                '0' | '#' | '?' => {
                    // Literals between digits, as in a telephone number, are not affixes.
                    if !seen.point {
                        form.mask.extend(form.after.chars().filter(|letter| !matches!(letter, '0' | '#')));
                        form.mask.push(if letter == '0' { '0' } else { '#' });
                    }
                    form.after.clear();
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
            form.before.clear();
        }
        if seen.scaled || seen.comma {
            form.after.clear();
        }
        form.before.drain(..form.before.len() - form.before.trim_start().len());
        form.after.truncate(form.after.trim_end().len());
        form.shape = match (seen.date, seen.time, seen.month_or_minute) {
            _ if form.shape != Shape::Number => form.shape,
            (true, true, _) => Shape::DateTime,
            (true, false, _) | (false, false, true) => Shape::Date,
            (false, true, _) => Shape::Time,
            (false, false, false) => Shape::Number,
        };
        form.decimals = (seen.places > 0 && !seen.scientific).then_some(seen.places);
        if seen.no_mask || seen.scientific || seen.scaled || seen.comma || form.shape != Shape::Number {
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
        if is_plain || self.mask.len() > LONGEST_MASK {
            self.mask.clear();
        }
    }

    fn brackets(&mut self, inside: &str, seen: &Letters) {
        if let Some(currency) = inside.strip_prefix('$') {
            self.side(seen).push_str(currency.split('-').next().unwrap_or_default());
        } else if matches!(inside.to_ascii_lowercase().as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss") {
            self.shape = Shape::Duration;
        }
    }

    fn side(&mut self, seen: &Letters) -> &mut String {
        if seen.digit { &mut self.after } else { &mut self.before }
    }
}

/// Numbers have at most 15 digits, with few literals between them.
const LONGEST_MASK: usize = 32;

/// The rest of `General` after its first letter.
const GENERAL: &str = "eneral";

fn is_general(rest: &str) -> bool {
    rest.get(..GENERAL.len()).is_some_and(|rest| rest.eq_ignore_ascii_case(GENERAL))
}

/// Characters seen in a format code.
#[derive(Default)]
struct Letters {
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

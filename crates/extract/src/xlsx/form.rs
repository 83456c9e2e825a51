//! What a number format asks for.
//!
//! Formats can do a great deal. Followed is what changes the meaning of a number: that it is a date, a time or a part of
//! a hundred, its decimals, its currency and its unit, and how the digits of a postal code or a telephone are set.
//! Thousands stay together and whole numbers are not rounded: `12553` is found by those who look for it, `12,553` are
//! two words.

/// How a number is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) shape: Shape,
    /// Places behind the point; none where as many are shown as there are.
    pub(super) decimals: Option<u8>,
    /// What stands on either side of the digits: a currency, a unit.
    pub(super) before: String,
    pub(super) after: String,
    /// The places of digits before the point, where they are more than a number: `0` is always shown, `#` only where there
    /// is a digit for it, and the rest stands between them.
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
    /// Hours that go on after 24.
    Duration,
}

/// As it is, with nothing beside it.
pub(super) static PLAIN: Form =
    Form { shape: Shape::Number, decimals: None, before: String::new(), after: String::new(), mask: String::new() };

// === impl ===

impl Form {
    /// Of the formats that every program knows by number. Those in between are currencies and numbers, by country.
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

    /// Reads a format code. Only its first section counts, the one for positive numbers.
    pub(super) fn parse(code: &str) -> Form {
        let mut form = Form::default();
        let mut seen = Letters::default();
        let mut letters = code.chars();
        while let Some(letter) = letters.next() {
            match letter {
                ';' => break,
                '"' => form.side(&seen).extend(letters.by_ref().take_while(|letter| *letter != '"')),
                '\\' => form.side(&seen).extend(letters.next()),
                // As much room as the next letter takes.
                '_' => {
                    letters.next();
                    form.side(&seen).push(' ');
                }
                '*' => drop(letters.next()),
                '[' => {
                    let inside: String = letters.by_ref().take_while(|letter| *letter != ']').collect();
                    // The section is for some numbers only.
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
                    // What stood between digits, as in a number of a telephone, is on neither side of them.
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
        // A text in place of digits hides the number, and `M` behind one in millions is wrong behind all its digits.
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

    /// Thousands stay together whatever parts them, and a mask that changes nothing is none.
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

/// Numbers have no more digits than 15, and little stands between them.
const LONGEST_MASK: usize = 32;

/// What is left of `General` after its first letter.
const GENERAL: &str = "eneral";

fn is_general(rest: &str) -> bool {
    rest.get(..GENERAL.len()).is_some_and(|rest| rest.eq_ignore_ascii_case(GENERAL))
}

/// Which letters of a code were met.
#[derive(Default)]
struct Letters {
    date: bool,
    time: bool,
    month_or_minute: bool,
    digit: bool,
    point: bool,
    /// Behind the last digit so far. It parts thousands where more digits come, and leaves them out where none do.
    comma: bool,
    /// There was one before the point.
    scaled: bool,
    scientific: bool,
    /// Something that has no mask.
    no_mask: bool,
    places: u8,
}

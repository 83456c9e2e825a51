//! Error model: the cost of typing one word as another.
//!
//! Restricted Damerau-Levenshtein distance with a cost per kind of error. Costs are in nats: an error that costs one
//! more is e times less frequent.

/// Longer words are never compared.
pub(super) const MAX_LETTERS: usize = 24;

/// Transposition of two letters.
const TRANSPOSITION_COST: f32 = 3.5;
/// Missing letter.
const DELETION_COST: f32 = 3.5;
/// Extra letter. It can be any letter, so it costs more than a missing one.
const INSERTION_COST: f32 = 5.5;
/// Substituted letter.
const SUBSTITUTION_COST: f32 = 6.0;
/// Discount for frequent errors: a neighbouring key, or one of two equal letters.
const EASY_DISCOUNT: f32 = 1.0;
/// Surcharge for the first letter, because typists watch the start of a word.
const FIRST_LETTER_PENALTY: f32 = 0.5;

/// Cost of typing `typed` for `meant`, with `surcharge` on every error. `None` if it exceeds `most`.
///
/// The common prefix, and then the common suffix, are assumed to be correct.
pub(super) fn edit_cost(typed: &[char], meant: &[char], surcharge: f32, most: f32) -> Option<f32> {
    if typed.len() > MAX_LETTERS || meant.len() > MAX_LETTERS {
        return None;
    }
    let (start, end) = common_affixes(typed, meant);
    let (height, width) = (typed.len() - end - start, meant.len() - end - start);
    // Dynamic programming by rows: the cost of each prefix of `typed` for each prefix of `meant`. A transposition
    // refers two rows back.
    let mut rows = [[0.0; MAX_LETTERS + 1]; 3];
    for column in 1..=width {
        rows[0][column] = rows[0][column - 1] + deletion_cost(meant, start + column - 1) + surcharge;
    }
    let mut lowest_above = 0.0;
    for row in 1..=height {
        let [two_above, above, here] = [row + 1, row + 2, row].map(|row| row % 3);
        let typed_at = start + row - 1;
        let extra = insertion_cost(typed, typed_at) + surcharge;
        rows[here][0] = rows[above][0] + extra;
        let mut lowest: f32 = rows[here][0];
        for column in 1..=width {
            let meant_at = start + column - 1;
            let mut least = rows[above][column - 1];
            if typed[typed_at] != meant[meant_at] {
                least += substitution_cost(typed[typed_at], meant[meant_at], meant_at) + surcharge;
            }
            least = least.min(rows[above][column] + extra);
            least = least.min(rows[here][column - 1] + deletion_cost(meant, meant_at) + surcharge);
            if row > 1 && column > 1 && are_swapped(&typed[typed_at - 1..], &meant[meant_at - 1..]) {
                least = least.min(rows[two_above][column - 2] + TRANSPOSITION_COST + surcharge);
            }
            rows[here][column] = least;
            lowest = lowest.min(least);
        }
        if lowest.min(lowest_above) > most {
            return None;
        }
        lowest_above = lowest;
    }
    let price = rows[height % 3][width];
    (price <= most).then_some(price)
}

/// Length of the common prefix, and of the common suffix of the rest.
fn common_affixes(typed: &[char], meant: &[char]) -> (usize, usize) {
    let is_same = |(one, other): &(&char, &char)| one == other;
    let start = typed.iter().zip(meant).take_while(is_same).count();
    let end = typed[start..].iter().rev().zip(meant[start..].iter().rev()).take_while(is_same).count();
    (start, end)
}

fn deletion_cost(meant: &[char], at: usize) -> f32 {
    DELETION_COST + first(at) - easy(at > 0 && meant[at - 1] == meant[at])
}

fn insertion_cost(typed: &[char], at: usize) -> f32 {
    let beside =
        |other: Option<&char>| other.is_some_and(|other| *other == typed[at] || are_adjacent_keys(*other, typed[at]));
    INSERTION_COST + first(at)
        - easy(at.checked_sub(1).is_some_and(|before| beside(typed.get(before))) || beside(typed.get(at + 1)))
}

fn substitution_cost(typed: char, meant: char, at: usize) -> f32 {
    SUBSTITUTION_COST + first(at) - easy(are_adjacent_keys(typed, meant))
}

fn are_swapped(typed: &[char], meant: &[char]) -> bool {
    typed[0] == meant[1] && typed[1] == meant[0]
}

fn first(at: usize) -> f32 {
    if at == 0 { FIRST_LETTER_PENALTY } else { 0.0 }
}

fn easy(is_easy: bool) -> f32 {
    if is_easy { EASY_DISCOUNT } else { 0.0 }
}

/// Whether two keys are neighbours.
fn are_adjacent_keys(one: char, other: char) -> bool {
    let (Some(one), Some(other)) = (key(one), key(other)) else { return false };
    one != other && one.0.abs_diff(other.0) <= 1 && one.1.abs_diff(other.1) <= 2
}

/// Row of a letter's key and its column in half keys: each row is shifted by half a key against the one above.
fn key(letter: char) -> Option<(u8, u8)> {
    const KEYS: [(u8, u8); 26] = {
        let rows: [&[u8]; 3] = [b"qwertyuiop", b"asdfghjkl", b"zxcvbnm"];
        let mut keys = [(0, 0); 26];
        let mut row = 0;
        while row < rows.len() {
            let mut place = 0;
            while place < rows[row].len() {
                keys[(rows[row][place] - b'a') as usize] = (row as u8, (2 * place + row) as u8);
                place += 1;
            }
            row += 1;
        }
        keys
    };
    letter.is_ascii_lowercase().then(|| KEYS[letter as usize - 'a' as usize])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters(word: &str) -> Vec<char> {
        word.chars().collect()
    }

    /// Recursive definition without a table, from `start` to `row` typed and `column` meant letters: the minimum over
    /// all last errors.
    fn textbook(typed: &[char], row: usize, meant: &[char], column: usize, start: usize) -> f32 {
        let before = |rows: usize, columns: usize| textbook(typed, row - rows, meant, column - columns, start);
        let (has_typed, has_meant) = (row > start, column > start);
        let mut least = if has_typed || has_meant { f32::INFINITY } else { 0.0 };
        if has_typed {
            least = least.min(before(1, 0) + insertion_cost(typed, row - 1) + SURCHARGE);
        }
        if has_meant {
            least = least.min(before(0, 1) + deletion_cost(meant, column - 1) + SURCHARGE);
        }
        if has_typed && has_meant {
            let (one, other) = (typed[row - 1], meant[column - 1]);
            let slip = if one == other { 0.0 } else { substitution_cost(one, other, column - 1) + SURCHARGE };
            least = least.min(before(1, 1) + slip);
        }
        if row > start + 1 && column > start + 1 && are_swapped(&typed[row - 2..], &meant[column - 2..]) {
            least = least.min(before(2, 2) + TRANSPOSITION_COST + SURCHARGE);
        }
        least
    }

    const SURCHARGE: f32 = 0.25;

    proptest! {
        #[test]
        fn the_price_is_that_of_the_textbook(typed in "[abcsé]{0,6}", meant in "[abcsé]{0,6}", most in 0.0f32..40.0) {
            let (typed, meant) = (letters(&typed), letters(&meant));
            let (start, end) = common_affixes(&typed, &meant);
            let expected = textbook(&typed, typed.len() - end, &meant, meant.len() - end, start);
            match edit_cost(&typed, &meant, SURCHARGE, most) {
                Some(price) => prop_assert!((price - expected).abs() < 1e-3 && price <= most),
                None => prop_assert!(expected > most - 1e-3),
            }
        }

        #[test]
        fn words_of_any_length_are_compared_or_refused(typed in ".{0,60}", meant in ".{0,60}") {
            edit_cost(&letters(&typed), &letters(&meant), 0.0, f32::INFINITY);
        }
    }

    #[test]
    fn each_slip_has_its_price() {
        for (typed, meant, expected) in [
            ("card", "card", 0.0),
            ("cadr", "card", TRANSPOSITION_COST),
            ("crd", "card", DELETION_COST),
            ("ard", "card", DELETION_COST + FIRST_LETTER_PENALTY),
            ("leter", "letter", DELETION_COST - EASY_DISCOUNT),
            ("caprd", "card", INSERTION_COST),
            ("carrd", "card", INSERTION_COST - EASY_DISCOUNT),
            ("cafrd", "card", INSERTION_COST - EASY_DISCOUNT),
            ("czrd", "card", SUBSTITUTION_COST - EASY_DISCOUNT),
            ("cpqd", "card", 2.0 * SUBSTITUTION_COST),
            ("", "a", DELETION_COST + FIRST_LETTER_PENALTY),
        ] {
            assert_eq!(edit_cost(&letters(typed), &letters(meant), 0.0, 20.0), Some(expected), "{typed} for {meant}");
        }
    }

    #[test]
    fn keys_lie_beside_those_around_them() {
        let beside: String = ('a'..='z').filter(|letter| are_adjacent_keys('g', *letter)).collect();
        assert_eq!(beside, "bfhtvy");
        assert!(!are_adjacent_keys('é', 'e') && !are_adjacent_keys('p', 'a'));
    }
}

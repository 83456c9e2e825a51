//! A code of what people type: words, letters as in words, sequences, keyboard walks, repetitions and dates. Published
//! example keys and unsalted hashes of common passwords are words as well.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest, Sha256, Sha512};

/// English words of placeholders, passwords and texts, roughly by frequency. The last ones are numbers of other languages,
/// names, and well-known constants.
const WORDS: &str = include_str!("words.txt");

/// Keys and tokens of documentation (AWS, Stripe, GitHub, Google, jwt.io, RFC 6749, 7515 and 7636), constant parts of
/// tokens, and hashes of the empty text.
const KNOWN_SAMPLES: &str = include_str!("known_samples.txt");

/// Very common passwords, each with its MD5 and SHA-1. SHA-2 is computed when the dictionary is built.
const COMMON_PASSWORDS: &str = include_str!("common_passwords.txt");

/// Half bits of a letter at the beginning of a word (first row) and after each letter, in base 36. Trained on words and
/// names in English, German, French, Spanish and Italian.
const LETTER_HALF_BITS: [&[u8; 26]; 27] = [
    b"897999babcc98aa8f868cc9jfg",
    b"mb88gf9f9lb785iah686acfgai",
    b"5ljj3mik8fm7gi6kp6ad8mlobo",
    b"6ocm6oj59r78mk5fjad7bpojdr",
    b"6dg93dcl6pfcce7hq97gbghpbk",
    b"8d96bdegckm9a7gbh559fbcbef",
    b"6lfi68kj4ol9eh6jo7ea8llnfo",
    b"7egj4md87oh9e97ip68c7eloho",
    b"5fkg3nml6pnceb5lq9e99ngpeq",
    b"bd798b9imkh7a47dsb77gapfpe",
    b"4hff5iggekifge5bldae4ickik",
    b"9gig3eeh5nleh8ajob5b8lknfn",
    b"6he94fjg6re6eh6hsh9a9firbi",
    b"57fe4nkm6qnd9d77qjajbonqdq",
    b"8j966d5i9hbfia8jsk76bejjcj",
    b"cc9adcchdib885aat699798ffn",
    b"5egc6hcb8qn6fg79q5a89knpdq",
    b"bfdbagfecig6eccejcac1gdigj",
    b"7fba4icj7sbdca6etb78aces9h",
    b"8i9d4mo98rbegk7agh749hcjds",
    b"7gce4hf66smffh7fs779aqchbg",
    b"9aaa8kbmaqf885g8r666honfhf",
    b"6kfi1lej6nlejh8jodfhhlligo",
    b"5ljj5lk66olbj86ko98ffmdolo",
    b"6h8f6hgg7khbad86dcd4fihk7k",
    b"8acc6ihhbli9c957lb56gjalil",
    b"5aed3gf79jgdec7fjcbc7ggidc",
];

const SEPARATORS: &[u8] = b"-_.:/@=+,;|~ ";

/// The keys of a US keyboard by row, without and with Shift.
const KEYBOARD: [[&[u8]; 4]; 2] = [
    [b"1234567890-=", b"qwertyuiop[]", b"asdfghjkl;'", b"zxcvbnm,./"],
    [b"!@#$%^&*()_+", b"QWERTYUIOP{}", b"ASDFGHJKL:\"", b"ZXCVBNM<>?"],
];
const KEYS: f64 = 47.0;

/// Digits and signs that replace letters.
const LEET: [(u8, u8); 14] = [
    (b'4', b'a'),
    (b'@', b'a'),
    (b'8', b'b'),
    (b'3', b'e'),
    (b'9', b'g'),
    (b'1', b'i'),
    (b'!', b'i'),
    (b'1', b'l'),
    (b'0', b'o'),
    (b'5', b's'),
    (b'$', b's'),
    (b'7', b't'),
    (b'+', b't'),
    (b'2', b'z'),
];

/// Bits that select a kind of segment, about the negative logarithm of its share.
const LETTER_BITS: f64 = 1.0;
const NEXT_LETTER_BITS: f64 = 0.6;
const DIGIT_BITS: f64 = 3.6 + std::f64::consts::LOG2_10;
const SAME_SEPARATOR_BITS: f64 = 3.5;
const SEPARATOR_BITS: f64 = 6.5;
const SIGN_BITS: f64 = 9.0;
const LEET_BITS: f64 = 4.0;
const WORD_BITS: f64 = 3.0;
const REVERSED_BITS: f64 = 2.0;
/// Bits that select one of the known samples and hashes.
const SAMPLE_BITS: f64 = 10.0;
const SEQUENCE_BITS: f64 = 4.5;
const WALK_BITS: f64 = 5.5;
const COPY_BITS: f64 = 4.5;
const DATE_BITS: f64 = 5.5;

const MAX_PERIOD: usize = 8;
const MIN_WALK: usize = 4;
const MIN_COPY: usize = 3;
/// Shorter words occur backwards by chance.
const MIN_REVERSED: usize = 4;

/// Calls `segment` with the length and the bits of each segment that may start at `at`.
pub(super) fn segments(token: &[u8], at: usize, mut segment: impl FnMut(usize, f64)) {
    let rest = &token[at..];
    segment(1, character(token, at));
    words(rest, &mut segment);
    sequences(rest, &mut segment);
    walk(rest, &mut segment);
    copies(token, at, &mut segment);
    if rest[0].is_ascii_digit() {
        dates(rest, &mut segment);
    }
}

/// One letter, digit or sign.
fn character(token: &[u8], at: usize) -> f64 {
    let (byte, before) = (token[at], at.checked_sub(1).map(|at| token[at]));
    let plain = match byte {
        _ if byte.is_ascii_alphabetic() => f64::INFINITY,
        _ if byte.is_ascii_digit() => DIGIT_BITS,
        _ if SEPARATORS.contains(&byte) => match token[..at].iter().rev().find(|byte| SEPARATORS.contains(byte)) {
            Some(last) if *last == byte => SAME_SEPARATOR_BITS,
            _ => SEPARATOR_BITS,
        },
        _ => SIGN_BITS,
    };
    let is_within = before.is_some_and(|before| before.is_ascii_alphabetic());
    let was_capital = before.is_some_and(|before| before.is_ascii_uppercase());
    let is_capital = byte.is_ascii_uppercase();
    let case = match (is_within, was_capital, is_capital) {
        (true, false, false) => 0.2,
        (true, false, true) => 2.8,
        _ => 1.0,
    };
    // `camelCase` begins a word.
    let begins = !is_within || (is_capital && !was_capital);
    let kind = if is_within { NEXT_LETTER_BITS } else { LETTER_BITS };
    let mut best = plain;
    for (letter, is_leet) in letters(byte) {
        let row = |row: usize| f64::from(half_bits(LETTER_HALF_BITS[row][usize::from(letter - b'a')])) / 2.0;
        let first = if begins { row(0) } else { f64::INFINITY };
        let after = before.into_iter().flat_map(letters).map(|(before, _)| row(usize::from(before - b'a') + 1));
        let bits = kind + after.fold(first, f64::min) + if is_leet { LEET_BITS } else { case };
        best = best.min(bits);
    }
    best
}

fn half_bits(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    }
}

/// The letters for which a character may stand, and whether it replaces a letter.
fn letters(byte: u8) -> impl Iterator<Item = (u8, bool)> {
    let is_letter = byte.is_ascii_alphabetic();
    let replaced = if is_letter { &[][..] } else { &LEET[..] };
    let letter = is_letter.then(|| (byte.to_ascii_lowercase(), false));
    letter.into_iter().chain(replaced.iter().filter(move |(leet, _)| *leet == byte).map(|(_, letter)| (*letter, true)))
}

/// A word in lower case and the bits of its rank.
type RankedWord = (Cow<'static, [u8]>, f64);

/// The words by their first two characters.
static DICTIONARY: LazyLock<HashMap<[u8; 2], Vec<RankedWord>>> = LazyLock::new(|| {
    let mut words: HashMap<[u8; 2], Vec<RankedWord>> = HashMap::new();
    let mut add = |word: Cow<'static, [u8]>, bits| words.entry([word[0], word[1]]).or_default().push((word, bits));
    for (rank, word) in WORDS.split_ascii_whitespace().map(str::as_bytes).enumerate() {
        // Zipf's law.
        let bits = (rank as f64 + 10.0).log2() + 2.3;
        add(word.into(), bits);
        if word.len() >= MIN_REVERSED {
            add(word.iter().rev().copied().collect(), bits + REVERSED_BITS);
        }
    }
    let samples = KNOWN_SAMPLES.split_ascii_whitespace().map(str::to_owned);
    for sample in samples.chain(password_hashes()) {
        add(sample.to_ascii_lowercase().into_bytes().into(), SAMPLE_BITS);
    }
    words
});

/// Unsalted hashes of common passwords: MD5, SHA-1 and SHA-2 in hex, SHA-256 also in Base64.
fn password_hashes() -> impl Iterator<Item = String> {
    let rows = COMMON_PASSWORDS.lines().filter_map(|line| line.split_once(' '));
    rows.flat_map(|(password, hashes)| {
        let sha256 = Sha256::digest(password);
        let computed =
            [format!("{sha256:x}"), format!("{:x}", Sha512::digest(password)), STANDARD_NO_PAD.encode(sha256)];
        hashes.split(' ').map(str::to_owned).chain(computed)
    })
}

fn words(rest: &[u8], segment: &mut impl FnMut(usize, f64)) {
    let [first, second, ..] = *rest else { return };
    let own = |byte: u8| (!byte.is_ascii_alphabetic()).then_some(byte);
    let candidates = |byte: u8| own(byte).into_iter().chain(letters(byte).map(|(letter, _)| letter));
    for first in candidates(first) {
        for second in candidates(second) {
            for (word, rank) in DICTIONARY.get(&[first, second]).into_iter().flatten() {
                let variant = rest.get(..word.len()).and_then(|typed| variant(word, typed));
                if let Some(variant) = variant {
                    segment(word.len(), WORD_BITS + rank + variant);
                }
            }
        }
    }
}

/// The bits of the capitals and of the replaced letters of a word, if `typed` is this word.
fn variant(word: &[u8], typed: &[u8]) -> Option<f64> {
    let (mut leet, mut capitals) = (0_u32, 0);
    for (byte, letter) in typed.iter().zip(word) {
        if byte.eq_ignore_ascii_case(letter) {
            capitals += usize::from(byte.is_ascii_uppercase());
        } else if LEET.contains(&(*byte, *letter)) {
            leet += 1;
        } else {
            return None;
        }
    }
    let capitals = match capitals {
        0 => 0.5,
        1 if typed[0].is_ascii_uppercase() => 2.0,
        _ if typed.iter().all(|byte| !byte.is_ascii_lowercase()) => 3.0,
        _ => 4.0 + word.len() as f64,
    };
    let leet = if leet == 0 { 0.2 } else { 2.0 + f64::from(leet) };
    Some(capitals + leet)
}

/// Repeated steps through the alphabet or over the keyboard, in up to eight interleaved sequences: `aaaa`,
/// `1357`, `a1b2c3`, `1qaz2wsx3edc`, `abc123def456`.
fn sequences(rest: &[u8], segment: &mut impl FnMut(usize, f64)) {
    for period in 1..=MAX_PERIOD.min(rest.len() / 2) {
        for step in [alphabet_step, keyboard_step] {
            let mut steps = [0; MAX_PERIOD];
            let found = (0..period).all(|lane| match step(rest[lane], rest[lane + period]) {
                Some(found) => {
                    steps[lane] = found;
                    true
                }
                None => false,
            });
            if !found {
                continue;
            }
            let bits = SEQUENCE_BITS + 3.0 + period as f64 * 94_f64.log2() + steps_bits(&steps[..period]);
            let follows = |at: &usize| step(rest[at - period], rest[*at]) == Some(steps[at % period]);
            let length = 2 * period + (2 * period..rest.len()).take_while(follows).count();
            segment(length, bits + length_bits(length) + shift_bits(&rest[..length]));
        }
    }
}

/// Separate steps, or one step for all characters except constant ones.
fn steps_bits(steps: &[i32]) -> f64 {
    let separate = steps.iter().map(|step| if step.abs() <= 1 { 2.0 } else { 6.0 }).sum();
    let common = steps.iter().copied().find(|step| *step != 0).unwrap_or_default();
    let is_common = steps.iter().all(|step| *step == 0 || *step == common);
    if is_common { f64::min(separate, 6.0 + steps.len() as f64) } else { separate }
}

/// The distance of two characters in `0123456789abc…`, where `9`, `f` and `z` may be followed by the first again.
fn alphabet_step(from: u8, to: u8) -> Option<i32> {
    let value = |byte: u8| char::from(byte).to_digit(36).map(|value| value as i32);
    let (Some(one), Some(other)) = (value(from), value(to)) else { return (from == to).then_some(0) };
    let around = match (from.is_ascii_digit(), to.is_ascii_digit()) {
        (true, true) => 10,
        (false, false) => 26,
        _ if one < 16 && other < 16 => 16,
        _ => return Some(other - one),
    };
    Some((other - one + around / 2 - 1).rem_euclid(around) - around / 2 + 1)
}

/// The distance of two keys, where the end of a row is followed by the next row.
fn keyboard_step(from: u8, to: u8) -> Option<i32> {
    let (from, to) = (key(from)?, key(to)?);
    if from.row == to.row { Some(to.column - from.column) } else { Some(to.place? - from.place?) }
}

#[derive(Debug, Clone, Copy)]
struct Key {
    row: i32,
    column: i32,
    /// Position among the letters and digits of all rows.
    place: Option<i32>,
    is_shifted: bool,
}

static KEY_TABLE: LazyLock<Vec<Option<Key>>> = LazyLock::new(|| {
    let mut table = vec![None; 256];
    for (keys, is_shifted) in KEYBOARD.iter().zip([false, true]) {
        let mut place = 0;
        for (row, keys) in keys.iter().enumerate() {
            for (column, byte) in keys.iter().enumerate() {
                let is_counted = KEYBOARD[0][row][column].is_ascii_alphanumeric();
                let key =
                    Key { row: row as i32, column: column as i32, place: is_counted.then_some(place), is_shifted };
                table[usize::from(*byte)] = Some(key);
                place += i32::from(is_counted);
            }
        }
    }
    table
});

fn key(byte: u8) -> Option<Key> {
    KEY_TABLE[usize::from(byte)]
}

/// One bit per character if shifted and other characters are mixed.
fn shift_bits(typed: &[u8]) -> f64 {
    let shifted = typed.iter().filter(|byte| key(**byte).is_some_and(|key| key.is_shifted)).count();
    if shifted == 0 || shifted == typed.len() { 1.0 } else { typed.len() as f64 }
}

/// A path over adjacent keys.
fn walk(rest: &[u8], segment: &mut impl FnMut(usize, f64)) {
    let (mut bits, mut last, mut length) = (WALK_BITS + KEYS.log2(), None, 1);
    for pair in rest.windows(2) {
        let (Some(from), Some(to)) = (key(pair[0]), key(pair[1])) else { break };
        let step = (to.row - from.row, to.column - from.column);
        if !matches!(step, (0, -1..=1) | (1, -1 | 0) | (-1, 0 | 1)) {
            break;
        }
        bits += if last == Some(step) { 0.7 } else { 4.1 };
        last = Some(step);
        length += 1;
    }
    if length >= MIN_WALK {
        segment(length, bits + length_bits(length) + shift_bits(&rest[..length]));
    }
}

/// Earlier characters, forwards or backwards.
fn copies(token: &[u8], at: usize, segment: &mut impl FnMut(usize, f64)) {
    let rest = &token[at..];
    for from in (0..at).filter(|from| token[*from].eq_ignore_ascii_case(&rest[0])) {
        let forwards = |offset: usize| Some(token[from + offset]);
        let backwards = |offset: usize| from.checked_sub(offset).map(|at| token[at]);
        for original in [&forwards as &dyn Fn(usize) -> Option<u8>, &backwards] {
            let is_same =
                |offset: &usize| original(*offset).is_some_and(|byte| byte.eq_ignore_ascii_case(&rest[*offset]));
            let length = (0..rest.len()).take_while(is_same).count();
            if length < MIN_COPY {
                continue;
            }
            let is_exact = (0..length).all(|offset| original(offset) == Some(rest[offset]));
            let case = if is_exact { 0.5 } else { 1.8 + length as f64 };
            segment(length, COPY_BITS + 1.0 + (at as f64).log2() + case + length_bits(length));
        }
    }
}

/// Years, months and days.
fn dates(rest: &[u8], segment: &mut impl FnMut(usize, f64)) {
    const FORMS: [(&[usize], f64); 5] =
        [(&[4], 0.0), (&[4, 2], 3.6), (&[4, 2, 2], 8.6), (&[2, 2, 4], 9.6), (&[2, 2, 2], 16.5)];
    for (form, bits) in FORMS {
        if let Some((length, numbers)) = numbers(rest, form) {
            let is_date = match (form, numbers) {
                ([4], [year, ..]) => is_year(year),
                ([4, _], [year, month, _]) => is_year(year) && is_day(month, 1),
                ([4, ..], [year, month, day]) => is_year(year) && is_day(month, day),
                ([.., 4], [one, other, year]) => is_year(year) && is_day(one, other),
                (_, [one, other, third]) => is_day(one, other) || is_day(other, third),
            };
            let year = match numbers.iter().max() {
                Some(2000..2040) => 6.4,
                Some(1900..2100) => 8.4,
                _ => 0.0,
            };
            if is_date {
                segment(length, DATE_BITS + bits + year);
            }
        }
    }
}

/// The numbers with these counts of digits, possibly separated, and their total length.
fn numbers(rest: &[u8], form: &[usize]) -> Option<(usize, [u32; 3])> {
    let (mut at, mut numbers) = (0, [0; 3]);
    for (part, digits) in form.iter().enumerate() {
        if part > 0 && rest.get(at).is_some_and(|byte| b"-_./:".contains(byte)) {
            at += 1;
        }
        let number = rest.get(at..at + digits).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        numbers[part] = number.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        at += digits;
    }
    Some((at, numbers))
}

fn is_year(number: u32) -> bool {
    (1900..2100).contains(&number)
}

/// Whether these are a month and a day, in either order.
fn is_day(one: u32, other: u32) -> bool {
    matches!((one, other), (1..=12, 1..=31) | (1..=31, 1..=12))
}

/// The bits of a length (Elias gamma code).
fn length_bits(length: usize) -> f64 {
    1.0 + 2.0 * (length as f64).log2()
}

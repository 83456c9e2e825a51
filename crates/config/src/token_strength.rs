//! Strength of an operator's token: the bits of its random characters.
//!
//! Two families of codes describe a token. A generator's code spends the bits of one character of its alphabet on each
//! character. The code of `typed.rs` describes what people type: words, also with capitals and replaced letters,
//! sequences, repetitions, keyboard walks, dates. The shortest description of the whole token (minimum description
//! length, the method of zxcvbn) decides which characters are random. Only these count.
//!
//! A code saves `n` bits on at most one of `2^n` random tokens, and typed text counts only if its code saves
//! [`EVIDENCE_BITS`]. Measured with 100,000 tokens of each of 28 generators: at the minimum length (22 to 24 characters)
//! up to 3 are refused, mostly because they have no capital by chance; of longer tokens none is.

#[cfg(test)]
mod tests;
mod typed;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const MIN_BITS: f64 = 128.0;

/// Minimum saving of typed text.
const EVIDENCE_BITS: f64 = 24.0;

/// Cost of a random character after typed text.
const END_OF_TYPED_BITS: f64 = 18.0;

/// Cost of a change from one alphabet to another.
const ALPHABET_CHANGE_BITS: f64 = 40.0;

/// Code length of a separator in a random token, such as the hyphens of a UUID.
const SEPARATOR_BITS: f64 = 3.0;

/// Of a longer token only the beginning is measured.
const MAX_LENGTH: usize = 256;

/// Maximum length of a prefix, including its separator.
const MAX_PREFIX: usize = 16;

/// The version and the variant are the same in every random UUID.
const UUID_FIXED_BITS: f64 = 6.0;
const UUID_LENGTH: usize = 36;

/// Shorter random text decodes to printable characters by chance.
const MIN_ENCODED: usize = 20;

const PRINTABLE: usize = 94;

/// Why a token does not have 128 random bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weakness {
    TooShort,
    Uuid,
    Guessable,
}

/// Why a token does not plausibly have 128 random bits, or `None` if it does.
pub(super) fn weakness(token: &str) -> Option<Weakness> {
    let token = &token.as_bytes()[..token.len().min(MAX_LENGTH)];
    // A prefix such as `sk-` does not make the rest weaker.
    let prefix = token.iter().take(MAX_PREFIX).rposition(|byte| matches!(byte, b'-' | b'_'));
    let rest = prefix.map(|end| &token[end + 1..]).filter(|rest| rest.iter().all(u8::is_ascii_alphanumeric));
    match rest.map(weakness_of) {
        Some(None) => None,
        _ => weakness_of(token),
    }
}

fn weakness_of(token: &[u8]) -> Option<Weakness> {
    let bits = random_bits(token);
    let uuids = token.windows(UUID_LENGTH).filter(|part| is_uuid(part)).count();
    if bits - uuids as f64 * UUID_FIXED_BITS >= MIN_BITS {
        return None;
    }
    Some(match bits {
        MIN_BITS.. => Weakness::Uuid,
        _ if Description::shortest(token, false).random < MIN_BITS => Weakness::TooShort,
        _ => Weakness::Guessable,
    })
}

fn random_bits(token: &[u8]) -> f64 {
    let padding = token.iter().rev().take_while(|byte| **byte == b'=').count();
    let token = &token[..token.len() - padding];
    let shortest = Description::shortest(token, true);
    let others =
        [low_variety(token), separated(token, u8::is_ascii_alphanumeric), separated(token, u8::is_ascii_alphabetic)];
    let plausible = others.into_iter().flatten().filter(|other| other.code + EVIDENCE_BITS < shortest.code);
    let bits = plausible.fold(shortest.random, |bits, other| bits.min(other.random));
    decoded(token).map_or(bits, |text| bits.min(Description::shortest(&text, true).random))
}

fn is_uuid(part: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    part.iter().enumerate().all(fits)
}

/// The code of the character counts and of the order of the characters, of which only the order is random.
fn low_variety(token: &[u8]) -> Option<Description> {
    let mut counts = [0; 256];
    for byte in token {
        counts[usize::from(*byte)] += 1;
    }
    let distinct = counts.iter().filter(|count| **count > 0).count();
    // Otherwise the counts cost more than they save.
    if distinct == 0 || distinct * 2 > token.len() {
        return None;
    }
    let order = factorial(token.len()) - counts.iter().map(|count| factorial(*count)).sum::<f64>();
    let set = choose(PRINTABLE + 1, distinct) + choose(token.len() - 1, distinct - 1);
    Some(Description { code: set + order, random: order })
}

/// The code of the letters, or of the letters and digits, and of the characters between them, one after the other: finds
/// words with symbols between their letters. The positions are random unless they have the same distance.
fn separated(token: &[u8], is_inner: fn(&u8) -> bool) -> Option<Description> {
    let (inner, between): (Vec<u8>, Vec<u8>) = token.iter().partition(|byte| is_inner(byte));
    if inner.is_empty() || between.is_empty() {
        return None;
    }
    let places: Vec<usize> = (0..token.len()).filter(|at| !is_inner(&token[*at])).collect();
    let is_regular = places.windows(3).all(|three| three[1] - three[0] == three[2] - three[1]);
    let length_bits = (token.len() as f64).log2();
    let (positions, random) = match is_regular {
        true => (2.0 * length_bits, 0.0),
        false => (choose(token.len(), between.len()), choose(token.len(), between.len())),
    };
    let (inner, between) = (Description::shortest(&inner, true), Description::shortest(&between, true));
    Some(inner.and(between.code + positions + length_bits + 1.0, between.random + random))
}

/// The binary logarithm of a factorial.
fn factorial(n: usize) -> f64 {
    (1..=n).map(|n| (n as f64).log2()).sum()
}

/// The binary logarithm of a binomial coefficient.
fn choose(n: usize, k: usize) -> f64 {
    factorial(n) - factorial(k) - factorial(n - k)
}

/// The text of a token whose parts are text in hex or Base64.
fn decoded(token: &[u8]) -> Option<Vec<u8>> {
    let parts: Vec<Option<Vec<u8>>> = token.split(|byte| *byte == b'.').map(text_of).collect();
    parts.iter().any(Option::is_some).then(|| {
        let originals = token.split(|byte| *byte == b'.').map(<[u8]>::to_vec);
        let parts: Vec<Vec<u8>> = parts.into_iter().zip(originals).map(|(text, part)| text.unwrap_or(part)).collect();
        parts.join(&b'.')
    })
}

fn text_of(part: &[u8]) -> Option<Vec<u8>> {
    if part.len() < MIN_ENCODED {
        return None;
    }
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let digits: Option<Vec<u32>> = part.iter().map(|byte| char::from(*byte).to_digit(16)).collect();
    // Pairs of decimal digits are printable too often.
    let digits = digits.filter(|digits| digits.len() % 2 == 0 && digits.iter().any(|digit| *digit > 9));
    let hex = digits.map(|digits| digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect());
    let base64 = |alphabet| GeneralPurpose::new(alphabet, lenient).decode(part).ok();
    let is_text = |text: &Vec<u8>| text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'));
    [hex, base64(&STANDARD), base64(&URL_SAFE)].into_iter().flatten().find(is_text)
}

/// The size of an alphabet, its characters, and the separators that may be between them.
struct Alphabet {
    bits: f64,
    contains: fn(u8) -> bool,
    separators: &'static [u8],
}

const ALPHABETS: usize = 7;

fn alphabets(token: &[u8]) -> [Alphabet; ALPHABETS] {
    // Base32 that has no digit by chance is still Base32.
    let one_case = if token.iter().any(u8::is_ascii_digit) { 36_f64 } else { 32.0 };
    let separators = b"-_.:";
    let alphabet = |size: f64, contains, separators| Alphabet { bits: size.log2(), contains, separators };
    [
        alphabet(10.0, |byte| byte.is_ascii_digit(), separators),
        alphabet(16.0, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'), separators),
        alphabet(16.0, |byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'), separators),
        alphabet(one_case, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z'), separators),
        alphabet(one_case, |byte| matches!(byte, b'0'..=b'9' | b'A'..=b'Z'), separators),
        alphabet(64.0, |byte| byte.is_ascii_alphanumeric() || b"-_+/".contains(&byte), b".:"),
        alphabet(PRINTABLE as f64, |_| true, b""),
    ]
}

/// A description of the first characters of a token.
#[derive(Debug, Clone, Copy)]
struct Description {
    /// Its length in bits.
    code: f64,
    /// The bits of the random characters in it.
    random: f64,
}

/// Shortest description by the code in use at its end: one for each alphabet, and one for typed text.
type State = [Description; ALPHABETS + 1];
const TYPED: usize = ALPHABETS;

impl Description {
    const EMPTY: Description = Description { code: 0.0, random: 0.0 };
    const NONE: Description = Description { code: f64::INFINITY, random: 0.0 };

    /// The shortest description of a token, by dynamic programming over its length (Viterbi).
    fn shortest(token: &[u8], with_typed: bool) -> Description {
        let alphabets = alphabets(token);
        let mut states: Vec<State> = vec![[Description::NONE; ALPHABETS + 1]; token.len() + 1];
        states[0] = [Description::EMPTY; ALPHABETS + 1];
        states[0][TYPED].code = EVIDENCE_BITS;
        for (at, byte) in token.iter().enumerate() {
            let typed = states[at][TYPED];
            let random = Description::best(&states[at][..ALPHABETS]);
            let changed = random.and(ALPHABET_CHANGE_BITS, 0.0).or(typed.and(END_OF_TYPED_BITS, 0.0));
            let mut state = states[at].map(|before| before.or(changed));
            state[TYPED] = typed.or(random.and(EVIDENCE_BITS, 0.0));
            for (code, Alphabet { bits, contains, separators }) in alphabets.iter().enumerate() {
                if contains(*byte) {
                    states[at + 1][code] = state[code].and(*bits, *bits);
                } else if separators.contains(byte) {
                    states[at + 1][code] = state[code].and(SEPARATOR_BITS, 0.0);
                }
            }
            if with_typed {
                typed::segments(token, at, |length, bits| {
                    let end = &mut states[at + length][TYPED];
                    *end = end.or(state[TYPED].and(bits, 0.0));
                });
            }
        }
        Description::best(&states[token.len()])
    }

    fn best(state: &[Description]) -> Description {
        state.iter().fold(Description::NONE, |best, other| best.or(*other))
    }

    fn or(self, other: Description) -> Description {
        if other.code < self.code { other } else { self }
    }

    fn and(self, code: f64, random: f64) -> Description {
        Description { code: self.code + code, random: self.random + random }
    }
}

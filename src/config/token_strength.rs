//! Entropy estimate of an operator's token.
//!
//! The estimate is the length times the bits of one character of the alphabet in use. Repetitions, runs of neighbours
//! (`1234567`, `qwertyuiop`) and words count for less. Random tokens of 128 bits pass: 32 hex digits, a UUID, 22
//! characters of Base64 or of letters and digits. Nobody can tell from a token that it is random, so this finds careless
//! ones only.

/// 128 bits, less what a random token may lack by chance: one of 26 Base32 characters may have no digit.
const MIN_BITS: f64 = 120.0;

/// Repetitions and runs count only where chance would hardly make them.
const IMPROBABLE_BITS: f64 = 30.0;

/// Per letter of words: a word of five letters is one of some thousand.
const BITS_PER_WORD_LETTER: f64 = 2.2;
const BITS_PER_WORD_SEPARATOR: f64 = 3.3;

/// Two letters that follow each other often in English. They are an eighth of all pairs, and most of those in words.
const COMMON_PAIRS: &str = "th he in er an re nd at on nt ha es st en ed to it ou ea hi is or ti as te et ng of al de \
    se le sa si ar ve ra ld ur ro ri io ic ne me li ll co ma om ho ta ce no pa ch wa la pe wo rd el tr ss us ge ck am ee \
    oo ac ot ow ey ry il ir ct ai ca so do be";

const KEYBOARD: &[u8] = b"qwertyuiopasdfghjklzxcvbnm1234567890";

/// Whether a token is plausibly random, with 128 bits.
pub(super) fn is_strong(token: &str) -> bool {
    bits(token) >= MIN_BITS
}

fn bits(token: &str) -> f64 {
    let token = token.trim_end_matches('=');
    let ungrouped: Vec<u8> = token.bytes().filter(|byte| *byte != b'-').collect();
    let is_number = ungrouped.iter().all(u8::is_ascii_digit);
    let is_hex = !is_number
        && (ungrouped.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            || ungrouped.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F')));
    let token = if is_number || is_hex { ungrouped } else { token.as_bytes().to_vec() };
    let mut distinct = token.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let alphabet = if is_hex { 16 } else { alphabet(&distinct) };
    let alphabet = if distinct.len() * 3 < alphabet.min(token.len()) { distinct.len() } else { alphabet };
    if alphabet < 2 {
        return 0.0;
    }
    let per_character = (alphabet as f64).log2();
    let shortest = (IMPROBABLE_BITS / per_character).ceil() as usize + 1;
    let (fresh, patterns) = without_patterns(&token, shortest);
    let count = (fresh.len() + patterns) as f64;
    let uniform = count * per_character;
    if is_hex || !is_text(&fresh) {
        return uniform;
    }
    let letters = fresh.iter().filter(|byte| byte.is_ascii_alphabetic()).count() as f64;
    uniform.min(letters * BITS_PER_WORD_LETTER + (count - letters) * BITS_PER_WORD_SEPARATOR)
}

/// The size of the alphabet that these characters come from.
fn alphabet(characters: &[u8]) -> usize {
    let any = |kind: fn(&u8) -> bool| characters.iter().any(kind);
    let is_odd = any(|byte| !byte.is_ascii_alphanumeric() && !b"-_+/".contains(byte));
    let is_other = any(|byte| !byte.is_ascii_alphanumeric());
    match (any(u8::is_ascii_lowercase), any(u8::is_ascii_uppercase)) {
        (true, true) if is_odd => 94,
        // Base64, perhaps without some of its digits and signs by chance.
        (true, true) => 64,
        (lower, upper) => {
            let others = if is_odd { 32 } else { usize::from(is_other) * 2 };
            usize::from(lower || upper) * 26 + usize::from(any(u8::is_ascii_digit)) * 10 + others
        }
    }
}

/// The characters that follow from no earlier ones, and two for each pattern of others.
fn without_patterns(token: &[u8], shortest: usize) -> (Vec<u8>, usize) {
    let (mut fresh, mut patterns, mut at) = (Vec::new(), 0, 0);
    while at < token.len() {
        let rest = &token[at..];
        let run = rest.windows(2).map(|pair| step(pair[0], pair[1]));
        let run = 1 + rest
            .get(1)
            .and_then(|next| step(rest[0], *next))
            .map_or(0, |first| run.take_while(|step| *step == Some(first)).count());
        let repeated = (0..at).map(|from| rest.iter().zip(&token[from..]).take_while(|(a, b)| a == b).count()).max();
        let length = run.max(repeated.unwrap_or(0));
        if length >= shortest {
            // Ends a word, as a separator does.
            fresh.push(b' ');
            patterns += 1;
            at += length;
        } else {
            fresh.push(token[at]);
            at += 1;
        }
    }
    (fresh, patterns)
}

/// How one character follows from the one before it, in the alphabet or on a keyboard.
fn step(from: u8, to: u8) -> Option<(bool, i16)> {
    let near = |from: usize, to: usize| i16::try_from(to as i64 - from as i64).ok().filter(|step| step.abs() <= 1);
    let key = |byte: u8| KEYBOARD.iter().position(|key| *key == byte.to_ascii_lowercase());
    let by_code = near(from.into(), to.into()).map(|step| (false, step));
    by_code.or_else(|| near(key(from)?, key(to)?).map(|step| (true, step)))
}

/// Whether most of it is words.
fn is_text(token: &[u8]) -> bool {
    let letters = token.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let capitals = token.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    // Words have capitals throughout, or at their beginning.
    if letters * 4 < token.len() * 3 || (capitals != letters && capitals * 4 > letters) {
        return false;
    }
    let is_inside_word = |pair: &&[u8]| {
        pair.iter().all(u8::is_ascii_alphabetic) && !(pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
    };
    let is_common =
        |pair: &[u8]| COMMON_PAIRS.split_ascii_whitespace().any(|common| common.as_bytes().eq_ignore_ascii_case(pair));
    let pairs: Vec<&[u8]> = token.windows(2).filter(is_inside_word).collect();
    let common = pairs.iter().filter(|pair| is_common(pair)).count();
    pairs.len() >= 12 && common * 10 >= pairs.len() * 6
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "0123456789";
    const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
    const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    /// The same numbers each time (splitmix64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        fn token(&mut self, alphabet: &str, length: usize) -> String {
            let letters = alphabet.as_bytes();
            (0..length).map(|_| char::from(letters[(self.next() % letters.len() as u64) as usize])).collect()
        }
    }

    #[test]
    fn s05_random_tokens_of_128_bits_pass() {
        let mut random = Random(7);
        let hex = &format!("{DIGITS}abcdef");
        let letters_and_digits = &format!("{LOWER}{UPPER}{DIGITS}");
        let kinds = [
            (hex.as_str(), 32),
            (hex, 64),
            (&format!("{DIGITS}ABCDEF"), 32),
            (letters_and_digits, 22),
            (&format!("{letters_and_digits}-_"), 22),
            (&format!("{letters_and_digits}-_"), 43),
            (&format!("{letters_and_digits}+/"), 22),
            (&format!("{UPPER}234567"), 26),
            (DIGITS, 39),
        ];
        for (alphabet, length) in kinds {
            for _ in 0..2000 {
                let token = random.token(alphabet, length);
                assert!(is_strong(&token), "{token} has {} bits", bits(&token));
            }
        }
        for _ in 0..2000 {
            let digits = random.token(hex, 32);
            let uuid = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-");
            assert!(is_strong(&uuid), "{uuid}");
            assert!(is_strong(&format!("{}==", random.token(letters_and_digits, 22))));
        }
    }

    #[test]
    fn s05_tokens_that_can_be_guessed_do_not() {
        let long = ["a".repeat(64), "1234567890".repeat(6), "password".repeat(8), "ab".repeat(40), "abc123".repeat(10)];
        let weak = [
            "",
            "a",
            "1234",
            "s3cr3t",
            "0123456789abcdef0123456789abcdef",
            "deadbeefdeadbeefdeadbeefdeadbeef",
            "00000000000000000000000000000001",
            "abcdefghijklmnopqrstuvwxyz0123456789",
            "qwertyuiopasdfghjklzxcvbnm1234567890",
            "correct-horse-battery-staple-and-more",
            "CorrectHorseBatteryStapleOperatorToken1",
            "this-is-my-very-secret-operator-token",
            "my-super-secret-password-123456789",
            "changeme-changeme-changeme-changeme",
            "please-change-me-before-going-to-production",
        ];
        for token in weak.into_iter().chain(long.iter().map(String::as_str)) {
            assert!(!is_strong(token), "{token} has {} bits", bits(token));
        }
        let mut random = Random(8);
        assert!((0..2000).all(|_| !is_strong(&random.token(&format!("{DIGITS}abcdef"), 28))), "112 bits");
    }
}

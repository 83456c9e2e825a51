//! Random tokens of common generators pass, and tokens that people type do not.

use super::*;

const DIGITS: &str = "0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const TOKENS_PER_GENERATOR: usize = 2_000;
/// For less common generators.
const TOKENS_PER_VARIANT: usize = 300;

const WEAK: &str = include_str!("weak_tokens.txt");

/// Reproducible random numbers (splitmix64).
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

    fn uuid(&mut self) -> String {
        let digits = self.token(&hex(), 32);
        let variant = self.token("89ab", 1);
        let parts = [&digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..]];
        format!("{}-{}-4{}-{variant}{}-{}", parts[0], parts[1], parts[2], parts[3], parts[4])
    }
}

fn hex() -> String {
    format!("{DIGITS}abcdef")
}

fn alphanumeric() -> String {
    format!("{LOWER}{UPPER}{DIGITS}")
}

/// Counts the refused tokens of a generator.
fn refused(tokens: usize, mut token: impl FnMut(&mut Random) -> String) -> (usize, String) {
    let mut random = Random(7);
    let mut refused = (0, String::new());
    for _ in 0..tokens {
        let token = token(&mut random);
        if weakness(&token).is_some() {
            refused = (refused.0 + 1, token);
        }
    }
    refused
}

fn assert_accepted(tokens: usize, prefix: &str, alphabet: &str, length: usize, suffix: &str) {
    let (count, example) = refused(tokens, |random| format!("{prefix}{}{suffix}", random.token(alphabet, length)));
    assert_eq!(count, 0, "{length} of {} characters: {example}", alphabet.len());
}

#[test]
fn s05_random_hex_tokens_of_128_bits_pass() {
    // `openssl rand -hex 16`, `openssl rand -hex 32`.
    for length in [32, 64] {
        assert_accepted(TOKENS_PER_GENERATOR, "", &hex(), length, "");
    }
    assert_accepted(TOKENS_PER_VARIANT, "", &hex().to_uppercase(), 32, "");
}

#[test]
fn s05_random_base64_tokens_of_128_bits_pass() {
    let (base64, url_safe) = (format!("{}+/", alphanumeric()), format!("{}-_", alphanumeric()));
    // `openssl rand -base64 24`, `openssl rand -base64 32`, `head -c32 /dev/urandom | base64`.
    assert_accepted(TOKENS_PER_GENERATOR, "", &base64, 32, "");
    assert_accepted(TOKENS_PER_GENERATOR, "", &base64, 43, "=");
    // `secrets.token_urlsafe(32)`
    assert_accepted(TOKENS_PER_GENERATOR, "", &url_safe, 43, "");
}

#[test]
fn s05_random_letters_and_digits_of_128_bits_pass() {
    // `pwgen -s 24`
    assert_accepted(TOKENS_PER_GENERATOR, "", &alphanumeric(), 24, "");
    assert_accepted(TOKENS_PER_VARIANT, "", &alphanumeric(), 32, "");
    assert_accepted(TOKENS_PER_VARIANT, "", &format!("{UPPER}234567"), 26, "");
    assert_accepted(TOKENS_PER_VARIANT, "", &format!("{LOWER}{DIGITS}"), 26, "");
    assert_accepted(TOKENS_PER_VARIANT, "", LOWER, 28, "");
    assert_accepted(TOKENS_PER_VARIANT, "", DIGITS, 39, "");
    // `pwgen -sy 24`
    let printable: String = ('!'..='~').collect();
    assert_accepted(TOKENS_PER_VARIANT, "", &printable, 24, "");
}

#[test]
fn s05_random_tokens_with_a_prefix_pass() {
    assert_accepted(TOKENS_PER_VARIANT, "sk-", &hex(), 32, "");
    assert_accepted(TOKENS_PER_VARIANT, "ghp_", &alphanumeric(), 36, "");
    assert_accepted(TOKENS_PER_GENERATOR, "sk-proj-", &format!("{}-_", alphanumeric()), 48, "");
    assert_accepted(TOKENS_PER_VARIANT, "corbie_", &format!("{}-_", alphanumeric()), 43, "");
}

#[test]
fn s05_two_random_uuids_pass_and_one_does_not() {
    let (count, example) = refused(TOKENS_PER_GENERATOR, |random| format!("{}{}", random.uuid(), random.uuid()));
    assert_eq!(count, 0, "{example}");
    let mut random = Random(7);
    assert!((0..500).all(|_| weakness(&random.uuid()) == Some(Weakness::Uuid)), "122 bits");
}

/// 22 characters leave 3 bits. One in 50,000 has no capital or no small letter, as if it had 114 bits.
#[test]
fn s05_random_tokens_of_22_characters_pass_almost_always() {
    let (count, example) =
        refused(TOKENS_PER_VARIANT, |random| format!("{}==", random.token(&format!("{}+/", alphanumeric()), 22)));
    assert!(count <= 1, "{count}: {example}");
    let (count, example) = refused(TOKENS_PER_VARIANT, |random| random.token(&alphanumeric(), 22));
    assert!(count <= 1, "{count}: {example}");
}

#[test]
fn s05_random_tokens_of_less_than_128_bits_do_not_pass() {
    let cases = [(hex(), 31), (alphanumeric(), 21), (format!("{LOWER}{DIGITS}"), 24), (DIGITS.to_owned(), 38)];
    for (alphabet, length) in cases {
        let mut random = Random(8);
        let tokens = std::iter::repeat_with(|| random.token(&alphabet, length)).take(500);
        assert!(tokens.into_iter().all(|token| weakness(&token).is_some()), "{length} of {}", alphabet.len());
    }
    let mut random = Random(8);
    let prefixed = std::iter::repeat_with(|| format!("my-secret-token-{}", random.token(&hex(), 24))).take(500);
    assert!(prefixed.into_iter().all(|token| weakness(&token).is_some()), "96 bits after words");
}

#[test]
fn s05_tokens_that_can_be_guessed_do_not_pass() {
    let weak: Vec<&str> = WEAK.lines().filter(|line| !line.is_empty()).collect();
    assert!(weak.len() >= 100, "{}", weak.len());
    let strong: Vec<&str> = weak.into_iter().filter(|token| weakness(token).is_none()).collect();
    assert_eq!(strong, [""; 0]);
    let long = ["a".repeat(64), "1234567890".repeat(6), "password".repeat(8), "ab".repeat(40), "abc123".repeat(10)];
    assert!(long.iter().all(|token| weakness(token) == Some(Weakness::Guessable)));
    assert_eq!(["", "a", "1234", "s3cr3t"].map(weakness), [Some(Weakness::TooShort); 4]);
}

#[test]
fn s05_unsalted_hashes_of_common_passwords_do_not_pass() {
    use sha2::{Digest, Sha256, Sha512};
    for password in ["test", "admin", "123456", "password", "changeme", "letmein"] {
        let (sha256, sha512) = (Sha256::digest(password), Sha512::digest(password));
        let base64 = base64::engine::general_purpose::STANDARD.encode(sha256);
        for token in
            [format!("{sha256:x}"), format!("{sha256:X}"), format!("sk-{sha256:x}"), format!("{sha512:x}"), base64]
        {
            assert_eq!(weakness(&token), Some(Weakness::Guessable), "{password}: {token}");
        }
    }
    let md5_and_sha1 = ["098f6bcd4621d373cade4e832627b4f6", "d033e22ae348aeb5660fc2140aec35850c4da997"];
    assert_eq!(md5_and_sha1.map(weakness), [Some(Weakness::Guessable); 2]);
}

#[test]
fn s05_published_example_keys_do_not_pass() {
    for token in [
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.\
         SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "2YotnFZFEjr1zCsicMWpAA",
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    ] {
        assert_eq!(weakness(token), Some(Weakness::Guessable), "{token}");
    }
    let mut random = Random(9);
    let signed = format!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.{}", random.token(&alphanumeric(), 43));
    assert_eq!(weakness(&signed), None, "only the constant parts of a token are known");
}

#[test]
fn s05_words_backwards_or_with_symbols_between_their_letters_do_not_pass() {
    let text = "correcthorsebatterystapleoperatortoken";
    let between = |symbols: &str| -> String {
        text.chars().zip(symbols.chars().cycle()).flat_map(|(letter, symbol)| [letter, symbol]).collect()
    };
    for symbols in [".", "-", "!", "1", "1234567890", "!@#$%^&*()", "-.", "_~+"] {
        assert_eq!(weakness(&between(symbols)), Some(Weakness::Guessable), "{}", between(symbols));
    }
    let backwards: String = text.chars().rev().collect();
    assert_eq!(weakness(&backwards), Some(Weakness::Guessable), "{backwards}");
}

//! Lexical guard of the semantic cache: numbers, word order and negation, which embeddings hardly distinguish.
//!
//! With the built-in model, flights from Paris to Rome and from Rome to Paris have a similarity of 0.999, and "allowed"
//! and "not allowed" 0.99. When in doubt, questions count as different, because a cache miss costs little.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Lexical features of a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LexicalSignature {
    /// The numbers in order, with the digits of any script.
    numbers: String,
    /// Hashes of the words in order, without punctuation and case.
    words: Box<[u64]>,
    /// Number of negations.
    negations: usize,
    /// Hashes of words without a negating prefix, such as `safe` for `unsafe`.
    negated_words: Box<[u64]>,
}

#[rustfmt::skip] // By language.
const NEGATION_WORDS: [&str; 28] = [
    "no", "not", "never", "none", "nor", "neither", "nobody", "cannot", "without", "nicht", "kein", "keine", "keinen",
    "keiner", "nie", "ohne", "pas", "jamais", "sans", "non", "nunca", "sin", "não", "senza", "mai", "niet", "geen", "нет",
];
/// Comparison operators.
const COMPARISON_SIGNS: &str = "<>=≤≥≠";
const NEGATING_PREFIXES: [&str; 7] = ["un", "in", "im", "il", "ir", "dis", "non"];

impl LexicalSignature {
    pub(super) fn of(text: &str) -> LexicalSignature {
        let text = text.to_lowercase();
        let words = || text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        let turned = |word| NEGATING_PREFIXES.iter().filter_map(move |turning| str::strip_prefix(word, turning));
        // Splitting `isn't` leaves a `t`.
        let says_no = |word: &&str| NEGATION_WORDS.contains(word) || *word == "t";
        LexicalSignature {
            numbers: numbers(&text),
            words: words().map(hash_word).collect(),
            negations: words().filter(says_no).count(),
            negated_words: words().flat_map(turned).filter(|rest| !rest.is_empty()).map(hash_word).collect(),
        }
    }

    /// Whether both questions may have the same meaning.
    pub(super) fn is_compatible(&self, other: &LexicalSignature) -> bool {
        self.numbers == other.numbers
            && self.negations == other.negations
            && self.has_same_word_order(other)
            && !self.negates(other)
            && !other.negates(self)
    }

    /// Whether the words that occur in both have the same order.
    fn has_same_word_order(&self, other: &LexicalSignature) -> bool {
        let (ours, theirs) = (&self.words, &other.words);
        ours.iter().filter(|word| theirs.contains(word)).eq(theirs.iter().filter(|word| ours.contains(word)))
    }

    /// Whether this question negates a word of the other by a prefix, and does not contain that word itself.
    fn negates(&self, other: &LexicalSignature) -> bool {
        self.negated_words.iter().any(|word| other.words.contains(word) && !self.words.contains(word))
    }
}

/// The numbers of a text with their signs and comparison operators.
fn numbers(text: &str) -> String {
    let (mut found, mut before) = (String::new(), ' ');
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_sign = letter == '-' && before.is_whitespace() && letters.peek().is_some_and(|next| next.is_numeric());
        if letter.is_numeric() || COMPARISON_SIGNS.contains(letter) || is_sign {
            found.push(letter);
        } else if !found.is_empty() && !found.ends_with(' ') {
            found.push(' ');
        }
        before = letter;
    }
    found.trim_end().to_owned()
}

/// Hashes a word to save memory.
fn hash_word(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, same: &[&str], others: &[&str]) {
        for (texts, agree) in [(same, true), (others, false)] {
            for text in texts {
                let (one, other) = (LexicalSignature::of(one), LexicalSignature::of(text));
                assert_eq!((one.is_compatible(&other), other.is_compatible(&one)), (agree, agree), "{text}");
            }
        }
    }

    #[test]
    fn other_numbers_are_another_question() {
        check("What is 2 + 2?", &["what's 2+2", "Tell me: 2, 2"], &["what is 2 + 3?", "what is 22?", "what is it?"]);
        check("Is it -5 degrees?", &["is it -5 degrees"], &["Is it +5 degrees?", "Is it 5 degrees?"]);
        check("What if x >= 30?", &["what if x >= 30"], &["What if x <= 30?"]);
        check("٣ كتب", &["٣ كتب؟"], &["٤ كتب"]);
    }

    #[test]
    fn the_same_words_in_another_order_are_another_question() {
        check(
            "Does the cat chase a dog?",
            &["does the cat chase a dog", "Will the cat chase a dog?!", "The cat, a dog", "something else"],
            &["Does a dog chase the cat?", "dog, cat", "The dog that the cat may chase"],
        );
    }

    #[test]
    fn a_no_makes_another_question() {
        check(
            "Is this allowed here?",
            &["is this permitted here"],
            &[
                "Is this not allowed here?",
                "Isn't this allowed here?",
                "Isn’t this allowed here?",
                "Is this disallowed here?",
            ],
        );
        check(
            "Ist das Parken hier erlaubt?",
            &["ist das parken hier erlaubt"],
            &["Ist das Parken hier nicht erlaubt?"],
        );
        check("Is it legal to park?", &["Is it lawful to park?"], &["Is it illegal to park?"]);
        check("Is it unsafe and not safe?", &["is it unsafe, and not safe"], &["Is it safe?"]);
        check("Why isn't it blue?", &["Why is it not blue"], &["Why is it blue?"]);
    }
}

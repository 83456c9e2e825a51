//! Query analysis: the terms of a query.

use crate::language::Language;
use crate::stop_words::is_stop_word;
use crate::tokenizer::{TokenKind, fold, to_term, tokenize};
use foldhash::{HashMap, HashMapExt};

/// A word of a query, in all forms that a chunk may contain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryTerm {
    /// Distinct, at least one.
    pub(crate) forms: Vec<String>,
    /// Number of occurrences in the query.
    pub(crate) count: u32,
    /// A compound in addition to its parts: it raises the score, but does not count as missing.
    pub(crate) is_extra: bool,
    /// The forms are spelling corrections; the word in the query is unknown.
    pub(crate) is_correction: bool,
    /// Weight in relevance, regardless of how many chunks contain it.
    pub(crate) plain_weight: f32,
    /// A number or a symbol.
    pub(crate) is_code: bool,
}

/// The rest of a longer query is ignored.
const MAX_TERMS: usize = 256;
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// Weight of a stop word in relevance. Only a query of stop words has them, and every chunk contains them.
const STOP_WORD_WEIGHT: f32 = 0.5;

/// The terms of a query, for an index with these languages and shares.
///
/// Stop words are removed unless there are no other words.
pub(crate) fn parse_query(text: &str, languages: &[(Language, f32)]) -> Vec<QueryTerm> {
    let text = &text[..text.floor_char_boundary(MAX_QUERY_BYTES)];
    // With one language there is no choice, and language detection takes longer than everything else.
    let certain = (languages.len() > 1).then(|| Language::detect(text)).flatten();
    let certain = certain.filter(|language| languages.iter().any(|(known, _)| known == language));
    let mut terms: Vec<(QueryTerm, bool)> = Vec::new();
    let mut seen = HashMap::new();
    let mut add = |token: &str, kind: TokenKind| {
        if terms.len() >= MAX_TERMS {
            return;
        }
        let raw = fold(token);
        if let Some(&at) = seen.get(&raw) {
            let (term, _): &mut (QueryTerm, bool) = &mut terms[at];
            term.count += 1;
            return;
        }
        seen.insert(raw.clone(), terms.len());
        let is_stop_word = kind == TokenKind::Word && is_stop_word(&raw, languages, certain);
        let mut forms = Vec::new();
        if kind == TokenKind::Word {
            for (language, _) in languages {
                forms.push(to_term(token, kind, Some(*language)));
                forms.push(fold(&language.stem(&raw)));
            }
        }
        forms.push(raw);
        forms.sort_unstable();
        forms.dedup();
        terms.push((
            QueryTerm {
                plain_weight: if is_stop_word { STOP_WORD_WEIGHT } else { 1.0 },
                is_code: kind == TokenKind::Code,
                forms,
                count: 1,
                is_extra: kind == TokenKind::Compound,
                is_correction: false,
            },
            is_stop_word,
        ));
    };
    // Single letters precede the pairs of the same run. A pair is more specific and replaces its letters.
    let mut letters: Vec<String> = Vec::new();
    tokenize(text, |token, kind| match kind {
        TokenKind::Letter => letters.push(token.to_owned()),
        TokenKind::Bigram => {
            while letters.last().is_some_and(|letter| token.contains(letter.as_str())) {
                letters.pop();
            }
            add(token, kind);
        }
        _ => {
            for letter in letters.drain(..) {
                add(&letter, TokenKind::Letter);
            }
            add(token, kind);
        }
    });
    for letter in letters.drain(..) {
        add(&letter, TokenKind::Letter);
    }
    if terms.iter().any(|(_, is_stop_word)| !is_stop_word) {
        terms.retain(|(_, is_stop_word)| !is_stop_word);
    }
    terms.into_iter().map(|(term, _)| term).collect()
}

// === impl Term ===

impl QueryTerm {
    #[cfg(test)]
    pub(crate) fn of_form(form: &str) -> QueryTerm {
        QueryTerm {
            forms: vec![form.into()],
            count: 1,
            is_extra: false,
            is_correction: false,
            plain_weight: 1.0,
            is_code: false,
        }
    }

    /// Replaces the forms with corrections, if there are any.
    pub(crate) fn replace_forms(&mut self, others: Vec<String>) {
        if !others.is_empty() {
            (self.forms, self.is_correction) = (others, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: [(Language, f32); 1] = [(Language::ENGLISH, 1.0)];

    #[test]
    fn a_query_of_stop_words_keeps_them() {
        assert_eq!(parse_query("to be or not to be", &ENGLISH).len(), 4);
        assert_eq!(parse_query("what is the invoice", &ENGLISH).len(), 1);
        assert_eq!(parse_query("to to", &ENGLISH)[0].count, 2);
    }

    #[test]
    fn a_word_is_a_stop_word_only_where_its_language_is_frequent() {
        let german = Language::detect("Die Verträge wurden gestern von beiden Geschäftsführern unterschrieben.");
        let languages = |share| [(Language::ENGLISH, 1.0 - share), (german.expect("German"), share)];
        assert_eq!(parse_query("die hard", &languages(0.05)).len(), 2);
        assert_eq!(parse_query("die hard", &languages(0.5)).len(), 1);
    }

    #[test]
    fn pairs_stand_for_the_letters_they_are_made_of() {
        let terms = parse_query("水 東京都", &[]);
        assert_eq!(terms.iter().map(|term| term.forms[0].as_str()).collect::<Vec<_>>(), ["東京", "京都", "水"]);
        assert_eq!(parse_query("水", &[])[0].forms, ["水"]);
    }

    #[test]
    fn long_and_strange_queries_are_bounded() {
        let emoji = "👩\u{200d}🚀".repeat(500);
        assert_eq!(parse_query(&emoji, &[]).len(), 1);
        let many: String = (0..100_000).map(|number| format!("{number} ")).collect();
        assert_eq!(parse_query(&many, &[]).len(), MAX_TERMS);
    }
}

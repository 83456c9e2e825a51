//! Lexical match of a query with the sentences of one text: which of them answers it best.
//!
//! The sentences are the corpus, so a word that many of them contain tells little. Analysis, stemming and spelling
//! correction are those of the index.

use crate::bm25::{LexicalView, WeightedQuery};
use crate::inverted_index::Builder;
use crate::language::Language;
use crate::{query_terms, spelling};

/// For each sentence the share of the query's words that it contains, weighted by their rarity among the sentences.
pub fn match_sentences(query: &str, sentences: &[&str]) -> Vec<f32> {
    let text = sentences.join(" ");
    let language = Language::detect(&text).or_else(|| Language::fallback(&text));
    let mut builder = Builder::default();
    sentences.iter().for_each(|sentence| builder.add_chunk(sentence, "", language));
    let words = builder.finish();
    let languages: Vec<(Language, f32)> = language.into_iter().map(|language| (language, 1.0)).collect();
    let mut terms = query_terms::parse_query(query, &languages);
    spelling::correct(&mut terms, &[&words]);
    let views = [LexicalView { words: &words, removed: &[], allowed: None }];
    let length = words.lengths.iter().map(|length| u64::from(*length)).sum();
    let weighted = WeightedQuery::new(&views, &terms, sentences.len(), length);
    let all: Vec<u32> = (0..sentences.len() as u32).collect();
    weighted.score(0, &all).into_iter().map(|(_, matched)| weighted.weights.idf_share(matched)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(query: &str, sentences: &[&str]) -> Option<usize> {
        let shares = match_sentences(query, sentences);
        let most = shares.iter().copied().fold(0.0, f32::max);
        shares.iter().position(|share| most > 0.0 && *share == most)
    }

    #[test]
    fn k34_the_sentence_with_the_rare_words_of_a_query_is_the_best() {
        let sentences = [
            "The warranty covers the pump for two years.",
            "The pump is delivered on a pallet.",
            "The warranty of the hoses ends after six months.",
            "Die Pumpe wiegt zwölf Kilogramm.",
        ];
        assert_eq!(best("how long is the warranty on hoses", &sentences), Some(2));
        assert_eq!(best("is the pump on a pallet when delivered", &sentences), Some(1));
        assert_eq!(best("pallets", &sentences), Some(1));
        assert_eq!(best("delivred pump", &sentences), Some(1), "a mistyped word");
        assert_eq!(best("Kilogramm", &sentences), Some(3));
        assert_eq!(best("invoice", &sentences), None);
    }

    #[test]
    fn strange_texts_match_nothing() {
        assert!(match_sentences("a query", &[]).is_empty());
        assert_eq!(match_sentences("", &["a text", ""]), [0.0, 0.0]);
        assert_eq!(match_sentences("?!", &["", "\u{0}"]), [0.0, 0.0]);
    }
}

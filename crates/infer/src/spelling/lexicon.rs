//! Lexicon: word frequencies and bigram counts.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use super::deletion_index::DeletionIndex;
use super::distance;

/// Rank of a word by frequency, from 0.
pub(super) type WordId = u16;

/// Weight of the training texts in the frequency of a word; the rest is general English.
const TRAINING_TEXT_SHARE: f32 = 0.7;
/// Absolute discounting: subtracted from every count, because a word that occurred once may itself be a typo.
const COUNT_DISCOUNT: f32 = 0.5;
/// Zipf-Mandelbrot offset: the probability of an English word is proportional to 1 / (rank + this).
const ZIPF_OFFSET: f32 = 1000.0;
/// Bigram smoothing: a word with this number of occurrences weights bigrams and unigrams equally.
const BIGRAM_PRIOR: f32 = 80.0;
/// Default probability that a text ends after a word.
const END_PROBABILITY: f32 = 0.12;
/// Maximum vocabulary size. Rarer words are dropped.
const MAX_WORDS: usize = 40_000;
/// Number of most common words that are found with two errors. Rarer words are hardly ever meant in that case.
const MAX_TWO_EDIT_WORDS: usize = 8_000;
/// Maximum number of bigrams. Rarer ones are dropped.
const MAX_BIGRAMS: usize = 60_000;
/// Words with a higher cost are not candidates.
const MAX_EDIT_COST: f32 = 14.0;

#[derive(Debug)]
pub(super) struct Lexicon {
    /// The letters of all words, concatenated.
    letters: Vec<char>,
    /// Start of each word's letters, followed by the end of the last.
    starts: Vec<u32>,
    /// Unigram log-probability of each word, followed by that of the end of a text.
    log_probabilities: Vec<f32>,
    deletion_index: DeletionIndex,
    /// Followers of each word with their counts, sorted by ID. The text boundary counts as a word.
    followers: Vec<(WordId, u32)>,
    /// Start of each word's followers, followed by the end of the last.
    follower_starts: Vec<u32>,
    /// For each word, the log of its follower count plus the smoothing constant.
    weights: Vec<f32>,
}

/// A candidate for a typed word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LexiconMatch {
    pub(super) id: WordId,
    pub(super) cost: f32,
}

impl Lexicon {
    /// Builds the lexicon from training texts and from English words, the most common first.
    pub(super) fn of<'a>(
        texts: impl Iterator<Item = Vec<Vec<char>>>,
        english: impl Iterator<Item = &'a str> + Clone,
    ) -> Lexicon {
        let WordCounts { words, pairs } = WordCounts::of(texts, english);
        let pairs = most_frequent(pairs);
        let mut followers = vec![(0, 0.0); words.len() + 1];
        for Bigram { before, times, .. } in &pairs {
            let (number, sum) = &mut followers[usize::from(*before)];
            *number += 1;
            *sum += *times as f32;
        }
        Lexicon {
            letters: words.iter().flat_map(|(word, _)| word).copied().collect(),
            starts: starts(words.iter().map(|(word, _)| word.len() as u32)),
            log_probabilities: words.iter().map(|(_, chance)| *chance).chain([END_PROBABILITY]).map(f32::ln).collect(),
            deletion_index: DeletionIndex::of(words.iter().map(|(word, _)| word.as_slice()), MAX_TWO_EDIT_WORDS),
            followers: pairs.iter().map(|pair| (pair.after, pair.times)).collect(),
            follower_starts: starts(followers.iter().map(|(number, _)| *number)),
            weights: followers.iter().map(|(_, sum)| (sum + BIGRAM_PRIOR).ln()).collect(),
        }
    }

    /// ID of the text boundary, before the first word and after the last.
    pub(super) fn boundary(&self) -> WordId {
        (self.log_probabilities.len() - 1) as WordId
    }

    pub(super) fn letters(&self, id: WordId) -> &[char] {
        &self.letters[range(&self.starts, id)]
    }

    pub(super) fn find(&self, word: &[char]) -> Option<WordId> {
        self.deletion_index.exact_candidates(word).find(|id| self.letters(*id) == word)
    }

    /// Up to `most_words` candidates, the most probable first.
    pub(super) fn candidates(
        &self,
        typed: &[char],
        slips: usize,
        surcharge: f32,
        most_words: usize,
    ) -> Vec<LexiconMatch> {
        let mut best: Vec<(f32, LexiconMatch)> = Vec::with_capacity(most_words + 1);
        // Common words come first, so the cost limit for entering the best list falls with every word.
        for id in self.deletion_index.candidates(typed, slips) {
            let (meant, chance) = (self.letters(id), self.log_probabilities[usize::from(id)]);
            let least = if best.len() == most_words { best[most_words - 1].0 } else { f32::NEG_INFINITY };
            if chance <= least {
                break;
            }
            if meant.len().abs_diff(typed.len()) > slips {
                continue;
            }
            if let Some(price) = distance::edit_cost(typed, meant, surcharge, MAX_EDIT_COST.min(chance - least)) {
                let place = best.partition_point(|(value, _)| *value >= chance - price);
                best.insert(place, (chance - price, LexiconMatch { id, cost: price }));
                best.truncate(most_words);
            }
        }
        best.into_iter().map(|(_, near)| near).collect()
    }

    /// Log-probability of a word after the previous one, or without context.
    pub(super) fn log_probability(&self, before: Option<WordId>, word: WordId) -> f32 {
        let alone = self.log_probabilities[usize::from(word)];
        let Some(before) = before else { return alone };
        let followers = &self.followers[range(&self.follower_starts, before)];
        let trusted = match followers.binary_search_by_key(&word, |(id, _)| *id) {
            Ok(place) => (followers[place].1 as f32 + BIGRAM_PRIOR * alone.exp()).ln(),
            Err(_) => alone + BIGRAM_PRIOR.ln(),
        };
        trusted - self.weights[usize::from(before)]
    }
}

/// Word and bigram counts.
struct WordCounts {
    /// Words with their probabilities, the most probable first.
    words: Vec<(Vec<char>, f32)>,
    /// All bigrams of the training texts.
    pairs: Vec<(WordId, WordId)>,
}

impl WordCounts {
    fn of<'a>(
        texts: impl Iterator<Item = Vec<Vec<char>>>,
        english: impl Iterator<Item = &'a str> + Clone,
    ) -> WordCounts {
        // Words are numbered in order of appearance; IDs are assigned at the end.
        let mut numbers: HashMap<Vec<char>, usize> = HashMap::new();
        let mut counts: Vec<f32> = Vec::new();
        // `None` is the boundary between two texts.
        let mut read: Vec<Option<usize>> = vec![None];
        for text in texts {
            for word in text {
                let number = *numbers.entry(word).or_insert(counts.len());
                if number == counts.len() {
                    counts.push(-COUNT_DISCOUNT);
                }
                counts[number] += 1.0;
                read.push(Some(number));
            }
            read.push(None);
        }
        let total = counts.iter().sum::<f32>().max(1.0);
        let mut chances: Vec<f32> = counts.iter().map(|count| TRAINING_TEXT_SHARE * count / total).collect();
        let zipf = |rank: usize| 1.0 / (rank as f32 + ZIPF_OFFSET);
        let all: f32 = (0..english.clone().count()).map(zipf).sum();
        for (rank, word) in english.enumerate() {
            let number = *numbers.entry(word.chars().collect()).or_insert(chances.len());
            if number == chances.len() {
                chances.push(0.0);
            }
            chances[number] += (1.0 - TRAINING_TEXT_SHARE) * zipf(rank) / all;
        }

        let mut words: Vec<(Vec<char>, usize)> = numbers.into_iter().collect();
        words.sort_unstable_by(|(word, number), (other, others)| {
            chances[*others].total_cmp(&chances[*number]).then_with(|| word.cmp(other))
        });
        words.truncate(MAX_WORDS);
        let mut ids: Vec<Option<WordId>> = vec![None; chances.len()];
        for (id, (_, number)) in words.iter().enumerate() {
            ids[*number] = Some(id as WordId);
        }
        let border = words.len() as WordId;
        let id = |number: Option<usize>| number.map_or(Some(border), |number| ids[number]);
        let pairs = read.windows(2).filter_map(|pair| id(pair[0]).zip(id(pair[1])));
        WordCounts {
            pairs: pairs.filter(|pair| *pair != (border, border)).collect(),
            words: words.into_iter().map(|(word, number)| (word, chances[number])).collect(),
        }
    }
}

/// A bigram with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Bigram {
    before: WordId,
    after: WordId,
    times: u32,
}

/// Sorted distinct bigrams; only the most frequent if there are too many.
fn most_frequent(mut pairs: Vec<(WordId, WordId)>) -> Vec<Bigram> {
    pairs.sort_unstable();
    let runs = pairs.chunk_by(|one, other| one == other);
    let mut pairs: Vec<Bigram> =
        runs.map(|run| Bigram { before: run[0].0, after: run[0].1, times: run.len() as u32 }).collect();
    if pairs.len() > MAX_BIGRAMS {
        pairs.sort_by_key(|pair| Reverse(pair.times));
        pairs.truncate(MAX_BIGRAMS);
        pairs.sort_unstable();
    }
    pairs
}

/// Prefix sums: start of each of several consecutive ranges, followed by the end of the last.
fn starts(lengths: impl Iterator<Item = u32>) -> Vec<u32> {
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    [0].into_iter().chain(ends).collect()
}

fn range(starts: &[u32], id: WordId) -> Range<usize> {
    starts[usize::from(id)] as usize..starts[usize::from(id) + 1] as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(word: &str) -> Vec<char> {
        word.chars().collect()
    }

    fn words(texts: &[&str], english: &[&str]) -> Lexicon {
        let texts = texts.iter().map(|text| text.split(' ').map(letters).collect());
        Lexicon::of(texts, english.iter().copied())
    }

    #[test]
    fn words_are_found_by_their_letters() {
        let words = words(&["my card", "my größe"], &["the", "card"]);
        for word in ["my", "card", "größe", "the"] {
            let id = words.find(&letters(word)).expect(word);
            assert_eq!(words.letters(id), letters(word));
        }
        assert_eq!(words.find(&letters("my card")), None);
        assert_eq!(words.find(&[]), None);
        assert_eq!(words.find(&letters(&"a".repeat(1000))), None);
    }

    #[test]
    fn common_words_come_first() {
        let words = words(&["my card", "my größe"], &["the", "card"]);
        let ids = ["my", "card", "größe", "the"].map(|word| words.find(&letters(word)).expect(word));
        assert!(ids[0] < ids[2] && ids[1] < ids[2], "{ids:?}");
        assert!(words.log_probability(None, ids[0]) > words.log_probability(None, ids[2]));
    }

    #[test]
    fn what_follows_in_the_texts_is_more_probable() {
        let words = words(&["my card", "a cart", "a cart", "my card"], &["care"]);
        let [my, card, cart] = ["my", "card", "cart"].map(|word| words.find(&letters(word)).expect(word));
        assert!(words.log_probability(Some(my), card) > words.log_probability(Some(my), cart));
        assert!(
            words.log_probability(Some(card), words.boundary()) > words.log_probability(Some(my), words.boundary())
        );
        assert!(
            words.log_probability(Some(words.boundary()), my) > words.log_probability(Some(words.boundary()), card)
        );
    }

    #[test]
    fn the_most_probable_of_the_words_nearby_come_first() {
        let words = words(&["card card card cart cart"], &["bare", "bark"]);
        let found = words.candidates(&letters("carx"), 1, 0.0, 2);
        let found: Vec<String> = found.iter().map(|near| words.letters(near.id).iter().collect()).collect();
        assert_eq!(found, ["card", "cart"]);
    }

    #[test]
    fn chances_after_any_word_sum_to_one() {
        let words = words(&["my card", "a cart", "a cart", "my card"], &["care", "card", "the"]);
        for before in [None].into_iter().chain((0..=words.boundary()).map(Some)) {
            let sum: f32 = (0..words.boundary()).map(|word| words.log_probability(before, word).exp()).sum();
            assert!(sum < 1.001, "{sum}");
        }
    }

    #[test]
    fn of_too_many_pairs_the_rarest_are_forgotten() {
        let mut pairs: Vec<(WordId, WordId)> =
            (0..MAX_BIGRAMS as u32 + 5).map(|pair| ((pair % 300) as WordId, (pair / 300) as WordId)).collect();
        pairs.push((299, 199));
        let kept = most_frequent(pairs);
        assert_eq!(kept.len(), MAX_BIGRAMS);
        assert!(kept.is_sorted());
        assert!(kept.contains(&Bigram { before: 299, after: 199, times: 2 }));
    }
}

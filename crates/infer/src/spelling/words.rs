//! Lexicon: word frequencies and bigram counts.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use super::distance;
use super::gaps::Gaps;

/// Rank of a word by frequency, from 0.
pub(super) type Id = u16;

/// Weight of the training texts in the frequency of a word; the rest is general English.
const TAUGHT: f32 = 0.7;
/// Absolute discounting: subtracted from every count, because a word that occurred once may itself be a typo.
const ONCE: f32 = 0.5;
/// Zipf-Mandelbrot offset: the probability of an English word is proportional to 1 / (rank + this).
const FLATNESS: f32 = 1000.0;
/// Bigram smoothing: a word with this number of occurrences weights bigrams and unigrams equally.
const TRUST: f32 = 80.0;
/// Default probability that a text ends after a word.
const END: f32 = 0.12;
/// Maximum vocabulary size. Rarer words are dropped.
const MOST_WORDS: usize = 40_000;
/// Number of most common words that are found with two errors. Rarer words are hardly ever meant in that case.
const MOST_LOOSE: usize = 8_000;
/// Maximum number of bigrams. Rarer ones are dropped.
const MOST_PAIRS: usize = 60_000;
/// Words with a higher cost are not candidates.
const MOST_PRICE: f32 = 14.0;

#[derive(Debug)]
pub(super) struct Words {
    /// The letters of all words, concatenated.
    letters: Vec<char>,
    /// Start of each word's letters, followed by the end of the last.
    starts: Vec<u32>,
    /// Unigram log-probability of each word, followed by that of the end of a text.
    chances: Vec<f32>,
    gaps: Gaps,
    /// Followers of each word with their counts, sorted by ID. The text boundary counts as a word.
    followers: Vec<(Id, u32)>,
    /// Start of each word's followers, followed by the end of the last.
    follower_starts: Vec<u32>,
    /// For each word, the log of its follower count plus the smoothing constant.
    weights: Vec<f32>,
}

/// A candidate for a typed word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    pub(super) id: Id,
    pub(super) price: f32,
}

impl Words {
    /// Builds the lexicon from training texts and from English words, the most common first.
    pub(super) fn of<'a>(
        texts: impl Iterator<Item = Vec<Vec<char>>>,
        english: impl Iterator<Item = &'a str> + Clone,
    ) -> Words {
        let Counted { words, pairs } = Counted::of(texts, english);
        let pairs = most_frequent(pairs);
        let mut followers = vec![(0, 0.0); words.len() + 1];
        for Pair { before, times, .. } in &pairs {
            let (number, sum) = &mut followers[usize::from(*before)];
            *number += 1;
            *sum += *times as f32;
        }
        Words {
            letters: words.iter().flat_map(|(word, _)| word).copied().collect(),
            starts: starts(words.iter().map(|(word, _)| word.len() as u32)),
            chances: words.iter().map(|(_, chance)| *chance).chain([END]).map(f32::ln).collect(),
            gaps: Gaps::of(words.iter().map(|(word, _)| word.as_slice()), MOST_LOOSE),
            followers: pairs.iter().map(|pair| (pair.after, pair.times)).collect(),
            follower_starts: starts(followers.iter().map(|(number, _)| *number)),
            weights: followers.iter().map(|(_, sum)| (sum + TRUST).ln()).collect(),
        }
    }

    /// ID of the text boundary, before the first word and after the last.
    pub(super) fn border(&self) -> Id {
        (self.chances.len() - 1) as Id
    }

    pub(super) fn letters(&self, id: Id) -> &[char] {
        &self.letters[range(&self.starts, id)]
    }

    pub(super) fn find(&self, word: &[char]) -> Option<Id> {
        self.gaps.same(word).find(|id| self.letters(*id) == word)
    }

    /// Up to `most_words` candidates, the most probable first.
    pub(super) fn near(&self, typed: &[char], slips: usize, surcharge: f32, most_words: usize) -> Vec<Near> {
        let mut best: Vec<(f32, Near)> = Vec::with_capacity(most_words + 1);
        // Common words come first, so the cost limit for entering the best list falls with every word.
        for id in self.gaps.near(typed, slips) {
            let (meant, chance) = (self.letters(id), self.chances[usize::from(id)]);
            let least = if best.len() == most_words { best[most_words - 1].0 } else { f32::NEG_INFINITY };
            if chance <= least {
                break;
            }
            if meant.len().abs_diff(typed.len()) > slips {
                continue;
            }
            if let Some(price) = distance::price(typed, meant, surcharge, MOST_PRICE.min(chance - least)) {
                let place = best.partition_point(|(value, _)| *value >= chance - price);
                best.insert(place, (chance - price, Near { id, price }));
                best.truncate(most_words);
            }
        }
        best.into_iter().map(|(_, near)| near).collect()
    }

    /// Log-probability of a word after the previous one, or without context.
    pub(super) fn chance(&self, before: Option<Id>, word: Id) -> f32 {
        let alone = self.chances[usize::from(word)];
        let Some(before) = before else { return alone };
        let followers = &self.followers[range(&self.follower_starts, before)];
        let trusted = match followers.binary_search_by_key(&word, |(id, _)| *id) {
            Ok(place) => (followers[place].1 as f32 + TRUST * alone.exp()).ln(),
            Err(_) => alone + TRUST.ln(),
        };
        trusted - self.weights[usize::from(before)]
    }
}

/// Word and bigram counts.
struct Counted {
    /// Words with their probabilities, the most probable first.
    words: Vec<(Vec<char>, f32)>,
    /// All bigrams of the training texts.
    pairs: Vec<(Id, Id)>,
}

impl Counted {
    fn of<'a>(texts: impl Iterator<Item = Vec<Vec<char>>>, english: impl Iterator<Item = &'a str> + Clone) -> Counted {
        // Words are numbered in order of appearance; IDs are assigned at the end.
        let mut numbers: HashMap<Vec<char>, usize> = HashMap::new();
        let mut counts: Vec<f32> = Vec::new();
        // `None` is the boundary between two texts.
        let mut read: Vec<Option<usize>> = vec![None];
        for text in texts {
            for word in text {
                let number = *numbers.entry(word).or_insert(counts.len());
                if number == counts.len() {
                    counts.push(-ONCE);
                }
                counts[number] += 1.0;
                read.push(Some(number));
            }
            read.push(None);
        }
        let total = counts.iter().sum::<f32>().max(1.0);
        let mut chances: Vec<f32> = counts.iter().map(|count| TAUGHT * count / total).collect();
        let zipf = |rank: usize| 1.0 / (rank as f32 + FLATNESS);
        let all: f32 = (0..english.clone().count()).map(zipf).sum();
        for (rank, word) in english.enumerate() {
            let number = *numbers.entry(word.chars().collect()).or_insert(chances.len());
            if number == chances.len() {
                chances.push(0.0);
            }
            chances[number] += (1.0 - TAUGHT) * zipf(rank) / all;
        }

        let mut words: Vec<(Vec<char>, usize)> = numbers.into_iter().collect();
        words.sort_unstable_by(|(word, number), (other, others)| {
            chances[*others].total_cmp(&chances[*number]).then_with(|| word.cmp(other))
        });
        words.truncate(MOST_WORDS);
        let mut ids: Vec<Option<Id>> = vec![None; chances.len()];
        for (id, (_, number)) in words.iter().enumerate() {
            ids[*number] = Some(id as Id);
        }
        let border = words.len() as Id;
        let id = |number: Option<usize>| number.map_or(Some(border), |number| ids[number]);
        let pairs = read.windows(2).filter_map(|pair| id(pair[0]).zip(id(pair[1])));
        Counted {
            pairs: pairs.filter(|pair| *pair != (border, border)).collect(),
            words: words.into_iter().map(|(word, number)| (word, chances[number])).collect(),
        }
    }
}

/// A bigram with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    before: Id,
    after: Id,
    times: u32,
}

/// Sorted distinct bigrams; only the most frequent if there are too many.
fn most_frequent(mut pairs: Vec<(Id, Id)>) -> Vec<Pair> {
    pairs.sort_unstable();
    let runs = pairs.chunk_by(|one, other| one == other);
    let mut pairs: Vec<Pair> =
        runs.map(|run| Pair { before: run[0].0, after: run[0].1, times: run.len() as u32 }).collect();
    if pairs.len() > MOST_PAIRS {
        pairs.sort_by_key(|pair| Reverse(pair.times));
        pairs.truncate(MOST_PAIRS);
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

fn range(starts: &[u32], id: Id) -> Range<usize> {
    starts[usize::from(id)] as usize..starts[usize::from(id) + 1] as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(word: &str) -> Vec<char> {
        word.chars().collect()
    }

    fn words(texts: &[&str], english: &[&str]) -> Words {
        let texts = texts.iter().map(|text| text.split(' ').map(letters).collect());
        Words::of(texts, english.iter().copied())
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
        assert!(words.chance(None, ids[0]) > words.chance(None, ids[2]));
    }

    #[test]
    fn what_follows_in_the_texts_is_more_probable() {
        let words = words(&["my card", "a cart", "a cart", "my card"], &["care"]);
        let [my, card, cart] = ["my", "card", "cart"].map(|word| words.find(&letters(word)).expect(word));
        assert!(words.chance(Some(my), card) > words.chance(Some(my), cart));
        assert!(words.chance(Some(card), words.border()) > words.chance(Some(my), words.border()));
        assert!(words.chance(Some(words.border()), my) > words.chance(Some(words.border()), card));
    }

    #[test]
    fn the_most_probable_of_the_words_nearby_come_first() {
        let words = words(&["card card card cart cart"], &["bare", "bark"]);
        let found = words.near(&letters("carx"), 1, 0.0, 2);
        let found: Vec<String> = found.iter().map(|near| words.letters(near.id).iter().collect()).collect();
        assert_eq!(found, ["card", "cart"]);
    }

    #[test]
    fn chances_after_any_word_sum_to_one() {
        let words = words(&["my card", "a cart", "a cart", "my card"], &["care", "card", "the"]);
        for before in [None].into_iter().chain((0..=words.border()).map(Some)) {
            let sum: f32 = (0..words.border()).map(|word| words.chance(before, word).exp()).sum();
            assert!(sum < 1.001, "{sum}");
        }
    }

    #[test]
    fn of_too_many_pairs_the_rarest_are_forgotten() {
        let mut pairs: Vec<(Id, Id)> =
            (0..MOST_PAIRS as u32 + 5).map(|pair| ((pair % 300) as Id, (pair / 300) as Id)).collect();
        pairs.push((299, 199));
        let kept = most_frequent(pairs);
        assert_eq!(kept.len(), MOST_PAIRS);
        assert!(kept.is_sorted());
        assert!(kept.contains(&Pair { before: 299, after: 199, times: 2 }));
    }
}

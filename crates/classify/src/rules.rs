//! Rule-based classification by patterns and words, in microseconds and without a model.
//!
//! Every matching pattern and word scores for its category. The remainder category does not compete: its patterns count
//! only if no other category matches, because a catch-all such as `.*` would flatten every distribution. The regex
//! engine runs in linear time, and the size of compiled expressions is bounded.

use aho_corasick::{AhoCorasick, MatchKind};
use corbie_infer::heads::Prediction;
use regex::{RegexBuilder, RegexSet, RegexSetBuilder};

use super::taxonomy::{Category, Taxonomy};

/// The compiled rules of all categories.
#[derive(Debug)]
pub struct RuleSet {
    classes: usize,
    retired: Vec<bool>,
    remainder: Option<usize>,
    patterns: PatternSet<RegexSet>,
    certain: PatternSet<RegexSet>,
    words: PatternSet<AhoCorasick>,
}

/// A multi-pattern matcher, and the category of each pattern.
#[derive(Debug)]
struct PatternSet<Matcher> {
    matcher: Matcher,
    category_of: Vec<usize>,
}

/// Weight of a category's first match, relative to all categories without a match together.
const FIRST_MATCH_WEIGHT: f32 = 5.0;
/// Factor for every further match.
const FURTHER_MATCH_FACTOR: f32 = 2.0;
/// Maximum number of matches that count; more add no confidence.
const MAX_COUNTED_MATCHES: u32 = 6;
/// Probability of a `certain` match. The author of the pattern may still be wrong.
const CERTAIN_PROBABILITY: f64 = 0.99;
/// Probability of the remainder category if no rule matches.
const REMAINDER_PROBABILITY: f64 = 0.65;
/// Maximum compiled size of one expression. The matching time grows with it.
const MAX_PATTERN_BYTES: usize = 512 << 10;
/// Maximum compiled size of all expressions together.
const MAX_TOTAL_PATTERN_BYTES: usize = 8 << 20;

impl RuleSet {
    /// The patterns must have passed [`check`] and [`check_all`].
    pub fn new(taxonomy: &Taxonomy) -> RuleSet {
        let categories = &taxonomy.categories;
        RuleSet {
            classes: categories.len(),
            retired: categories.iter().map(|category| category.retired).collect(),
            remainder: taxonomy.remainder,
            patterns: PatternSet::patterns(categories, |category| &category.patterns),
            certain: PatternSet::patterns(categories, |category| &category.certain),
            words: PatternSet::words(categories),
        }
    }

    /// The verdict of `certain` patterns, if exactly one category matches.
    pub fn certain(&self, text: &str) -> Option<Prediction> {
        let mut classes = self.certain.matching_categories(text);
        let class = classes.next()?;
        classes.all(|other| other == class).then(|| self.spread(class, CERTAIN_PROBABILITY))
    }

    /// The verdict of all rules.
    pub fn classify(&self, text: &str) -> Prediction {
        if let Some(verdict) = self.certain(text) {
            return verdict;
        }
        let mut finds = vec![0u32; self.classes];
        let patterns = self.patterns.matching_categories(text).chain(self.certain.matching_categories(text));
        patterns.chain(self.words.matching_categories(text)).for_each(|class| finds[class] += 1);
        if let Some(remainder) = self.remainder {
            let others: u32 = finds.iter().sum::<u32>() - finds[remainder];
            if others == 0 {
                return self.spread(remainder, REMAINDER_PROBABILITY);
            }
            finds[remainder] = 0;
        }
        self.predict_from_counts(&finds)
    }

    /// The matching rules of a category, in their source form: the `certain` ones if any match, otherwise all.
    pub fn matching_rules(&self, class: usize, text: &str, taxonomy: &Taxonomy) -> Vec<String> {
        let certain = self.certain.matching_patterns(class, text);
        if !certain.is_empty() {
            return certain;
        }
        let words: Vec<&String> = taxonomy.categories.iter().flat_map(|category| &category.words).collect();
        let found = self.words.matching_words(text).filter(|word| self.words.category_of[*word] == class);
        let words = found.filter_map(|word| words.get(word).map(|word| (*word).clone()));
        self.patterns.matching_patterns(class, text).into_iter().chain(words).collect()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.patterns.category_of.is_empty() && self.certain.category_of.is_empty() && self.words.category_of.is_empty()
    }

    fn predict_from_counts(&self, finds: &[u32]) -> Prediction {
        let without = finds.iter().zip(&self.retired).filter(|(finds, retired)| **finds == 0 && !**retired).count();
        let weight = |(finds, retired): (&u32, &bool)| match (finds, retired) {
            (_, true) => 0.0,
            (0, false) => 1.0 / without as f32,
            (finds, false) => {
                FIRST_MATCH_WEIGHT * FURTHER_MATCH_FACTOR.powi((*finds).min(MAX_COUNTED_MATCHES) as i32 - 1)
            }
        };
        let weights: Vec<f32> = finds.iter().zip(&self.retired).map(weight).collect();
        let total: f32 = weights.iter().sum();
        without_out_of_scope(weights.into_iter().map(|weight| weight / total).collect())
    }

    /// Gives one category this probability and splits the rest evenly.
    fn spread(&self, class: usize, probability: f64) -> Prediction {
        let others = self.retired.iter().enumerate().filter(|(other, retired)| *other != class && !**retired).count();
        let share = ((1.0 - probability) / others.max(1) as f64) as f32;
        let of = |(other, retired): (usize, &bool)| match (other == class, retired) {
            (true, _) if others == 0 => 1.0,
            (true, _) => probability as f32,
            (false, true) => 0.0,
            (false, false) => share,
        };
        without_out_of_scope(self.retired.iter().enumerate().map(of).collect())
    }
}

/// Rules have no out-of-scope detection.
fn without_out_of_scope(probabilities: Vec<f32>) -> Prediction {
    Prediction { probabilities, out_of_scope: 0.0, strangeness: 0.0 }
}

/// Validates one expression.
pub fn check(pattern: &str) -> Result<(), String> {
    let compiled = RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build();
    compiled.map(drop).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "is too large; use fewer or smaller repetitions".into(),
        error => format!("is not a valid regular expression: {}", last_line(&error.to_string())),
    })
}

/// Validates the total size of all expressions.
pub fn check_all<'a>(patterns: impl Iterator<Item = &'a String>) -> Result<(), String> {
    compile_set(patterns.map(String::as_str)).map(drop).map_err(|_| {
        format!("compiled patterns exceed {} MiB; use fewer patterns, or `words`", MAX_TOTAL_PATTERN_BYTES >> 20)
    })
}

fn compile_set<'a>(patterns: impl Iterator<Item = &'a str>) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(patterns).case_insensitive(true).size_limit(MAX_TOTAL_PATTERN_BYTES).build()
}

/// The engine's error message spans several lines; the last one has the reason.
fn last_line(error: &str) -> &str {
    error.lines().last().unwrap_or(error).trim_start_matches("error: ")
}

impl PatternSet<RegexSet> {
    fn patterns(categories: &[Category], of: impl Fn(&Category) -> &[String] + Copy) -> Self {
        let all = categories.iter().flat_map(&of);
        let owners =
            categories.iter().enumerate().flat_map(|(class, category)| of(category).iter().map(move |_| class));
        let matcher = compile_set(all.map(String::as_str)).expect("patterns were validated when they were read");
        PatternSet { matcher, category_of: owners.collect() }
    }

    /// The category of each pattern that matches.
    fn matching_categories(&self, text: &str) -> impl Iterator<Item = usize> {
        let matches = (!self.category_of.is_empty()).then(|| self.matcher.matches(text));
        matches.into_iter().flatten().map(|pattern| self.category_of[pattern])
    }

    /// The matching patterns of one category, in their source form.
    fn matching_patterns(&self, class: usize, text: &str) -> Vec<String> {
        let matches = self.matcher.matches(text).into_iter().filter(|pattern| self.category_of[*pattern] == class);
        matches.map(|pattern| self.matcher.patterns()[pattern].clone()).collect()
    }
}

impl PatternSet<AhoCorasick> {
    fn words(categories: &[Category]) -> Self {
        let all = categories.iter().enumerate();
        let (owners, words): (Vec<usize>, Vec<String>) =
            all.flat_map(|(class, category)| category.words.iter().map(move |word| (class, normalize(word)))).unzip();
        let matcher = AhoCorasick::builder().match_kind(MatchKind::Standard).build(words);
        PatternSet {
            matcher: matcher.expect("a taxonomy file cannot contain more than 4 billion words"),
            category_of: owners,
        }
    }

    /// The category of each distinct matching word.
    fn matching_categories(&self, text: &str) -> impl Iterator<Item = usize> {
        self.matching_words(text).map(|word| self.category_of[word])
    }

    /// The index of each distinct matching word.
    fn matching_words(&self, text: &str) -> impl Iterator<Item = usize> {
        let mut seen = vec![false; self.category_of.len()];
        if !self.category_of.is_empty() {
            let text = normalize(text);
            for found in self.matcher.find_overlapping_iter(&text) {
                let seen = &mut seen[found.pattern().as_usize()];
                *seen = *seen || is_whole_word(&text, found.start(), found.end());
            }
        }
        seen.into_iter().enumerate().filter(|(_, seen)| *seen).map(|(word, _)| word)
    }
}

/// Lower-cases the text and collapses whitespace.
fn normalize(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Whether the match has word boundaries on both sides.
fn is_whole_word(text: &str, start: usize, end: usize) -> bool {
    let before = text[..start].chars().next_back().is_some_and(char::is_alphanumeric);
    let after = text[end..].chars().next().is_some_and(char::is_alphanumeric);
    !before && !after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(yaml: &str) -> RuleSet {
        RuleSet::new(&Taxonomy::parse(yaml).unwrap())
    }

    const SMALL: &str = r"
categories:
  - name: bills
    words: [refund, pay back]
    patterns: ['invoice\s+\d+']
    certain: ['^INV-\d+$']
  - name: weather
    words: [rain, Größe]
  - name: general
    patterns: ['.*', 'hello']
";

    fn check_class(text: &str, class: usize, least: f32) {
        let verdict = rules(SMALL).classify(text);
        assert_eq!(verdict.class(), class, "{text}: {verdict:?}");
        assert!(verdict.confidence() >= least, "{text}: {verdict:?}");
        assert!((verdict.probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn c50_patterns_and_words_speak_for_their_category() {
        check_class("about Invoice 77", 0, 0.7);
        check_class("I want a REFUND for invoice 77", 0, 0.85);
        check_class("please pay  back", 0, 0.7);
        check_class("what größe is it", 1, 0.7);
    }

    #[test]
    fn words_are_whole_words() {
        check_class("the train is late", 2, 0.6);
    }

    #[test]
    fn z01_a_catch_all_never_competes_and_never_flattens() {
        check_class("rain", 1, 0.8);
        check_class("hello rain", 1, 0.8);
        check_class("hello", 2, 0.6);
        check_class("nothing known", 2, 0.6);
    }

    #[test]
    fn what_is_certain_needs_no_second_find() {
        assert_eq!(rules(SMALL).certain("INV-12").unwrap().confidence(), 0.99);
        assert_eq!(rules(SMALL).certain("invoice INV-12"), None);
        let two = rules("categories: [{name: a, certain: [x]}, {name: b, certain: [y]}]");
        assert_eq!(two.certain("x y"), None);
        assert_eq!(two.classify("x y").probabilities, [0.5, 0.5]);
    }

    #[test]
    fn what_spoke_for_a_category_is_told_as_it_was_written() {
        let taxonomy = Taxonomy::parse(SMALL).unwrap();
        let rules = RuleSet::new(&taxonomy);
        let check = |text: &str, class: usize, expected: &[&str]| {
            assert_eq!(rules.matching_rules(class, text, &taxonomy), expected, "{text}");
        };
        check("please pay  back invoice 77", 0, &[r"invoice\s+\d+", "pay back"]);
        check("INV-12", 0, &[r"^INV-\d+$"]);
        check("what größe is it", 1, &["Größe"]);
        check("please pay back", 1, &[]);
    }

    #[test]
    fn categories_that_both_fit_share() {
        let verdict = rules(SMALL).classify("a refund because of the rain");
        assert_eq!(verdict.probabilities[0], verdict.probabilities[1]);
        assert!(verdict.probabilities[2] < 0.1);
    }

    #[test]
    fn without_a_remainder_nothing_found_means_no_idea() {
        let verdict = rules("categories: [{name: a, words: [x]}, {name: b, words: [y]}]").classify("z");
        assert_eq!(verdict.probabilities, [0.5, 0.5]);
        assert_eq!(rules("categories: [{name: general}]").classify("z").probabilities, [1.0]);
        assert_eq!(rules("categories: [{name: only, words: [x]}]").classify("x").probabilities, [1.0]);
    }

    #[test]
    fn expressions_that_could_run_away_are_bounded() {
        // Exponential in backtracking engines, linear here.
        let rules = rules("categories: [{name: a, patterns: ['(a+)+$']}, {name: b}]");
        assert_eq!(rules.classify(&format!("{}b", "a".repeat(30_000))).class(), 0);
        assert!(check(r"(?:a{1000}){1000}").unwrap_err().contains("too large"));
        assert!(check("(unclosed").unwrap_err().contains("unclosed group"));
        assert!(check(r"(a)\1").unwrap_err().contains("backreferences are not supported"));
        assert_eq!(check(r"\bok\b"), Ok(()));
    }
}

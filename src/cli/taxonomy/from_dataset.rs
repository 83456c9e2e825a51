//! Groups labelled texts into categories.
//!
//! Pure: takes the parsed texts and reports how each was used.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::classify::taxonomy::MAX_EXAMPLE_CHARS;
use crate::evaluate::dataset::LabelledText;

/// The categories, and counts of the texts that were left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DatasetCategories {
    /// In order of first occurrence.
    pub(super) categories: Vec<DatasetCategory>,
    pub(super) contradictions: Vec<Contradiction>,
    /// Texts without a label.
    pub(super) unlabelled: usize,
    /// Texts with only white space.
    pub(super) empty: usize,
    /// Texts longer than the limit for examples.
    pub(super) too_long: usize,
    /// Duplicates within a category.
    pub(super) repeated: usize,
    /// Texts over the limit per category.
    pub(super) surplus: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct DatasetCategory {
    pub(super) name: String,
    /// Line of its first occurrence.
    pub(super) line: usize,
    pub(super) examples: Vec<String>,
}

/// A text with two different labels. It is used for neither.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contradiction {
    pub(super) text: String,
    /// Line and label of the first occurrence.
    pub(super) first: (usize, String),
    pub(super) then: (usize, String),
}

/// First occurrence of a text.
struct FirstOccurrence {
    class: usize,
    line: usize,
    contradicted: bool,
}

/// Keeps at most `most` examples per category, spread evenly over the file, because files are often sorted.
pub(super) fn categories_from(texts: &[LabelledText], most: usize) -> DatasetCategories {
    let mut gathered = DatasetCategories::default();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut seen: HashMap<&str, FirstOccurrence> = HashMap::new();
    let mut kept: Vec<Vec<&str>> = Vec::new();
    for LabelledText { text, label, line } in texts {
        let (text, line) = (text.trim(), *line);
        let Some(label) = label.as_deref().map(str::trim).filter(|label| !label.is_empty()) else {
            gathered.unlabelled += 1;
            continue;
        };
        let class = *places.entry(label).or_insert_with(|| {
            gathered.categories.push(DatasetCategory { name: label.to_owned(), line, examples: Vec::new() });
            kept.push(Vec::new());
            kept.len() - 1
        });
        if text.is_empty() {
            gathered.empty += 1;
        } else if text.chars().count() > MAX_EXAMPLE_CHARS {
            gathered.too_long += 1;
        } else {
            match seen.entry(text) {
                Entry::Vacant(place) => {
                    place.insert(FirstOccurrence { class, line, contradicted: false });
                    kept[class].push(text);
                }
                Entry::Occupied(first) if first.get().class == class => gathered.repeated += 1,
                Entry::Occupied(mut first) => {
                    let first = first.get_mut();
                    if !std::mem::replace(&mut first.contradicted, true) {
                        gathered.contradictions.push(Contradiction {
                            text: text.to_owned(),
                            first: (first.line, gathered.categories[first.class].name.clone()),
                            then: (line, label.to_owned()),
                        });
                    }
                }
            }
        }
    }
    for (category, mut texts) in gathered.categories.iter_mut().zip(kept) {
        texts.retain(|text| !seen[text].contradicted);
        let (count, taken) = (texts.len(), texts.len().min(most));
        gathered.surplus += count - taken;
        category.examples = (0..taken).map(|index| texts[index * count / taken].to_owned()).collect();
    }
    gathered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(texts: &[(&str, Option<&str>)]) -> Vec<LabelledText> {
        let line = |(index, (text, label)): (usize, &(&str, Option<&str>))| LabelledText {
            text: (*text).to_owned(),
            label: label.map(str::to_owned),
            line: index + 1,
        };
        texts.iter().enumerate().map(line).collect()
    }

    fn examples(gathered: &DatasetCategories) -> Vec<(&str, Vec<&str>)> {
        let of = |each| -> (&str, Vec<&str>) {
            let DatasetCategory { name, examples, .. }: &DatasetCategory = each;
            (name, examples.iter().map(String::as_str).collect())
        };
        gathered.categories.iter().map(of).collect()
    }

    #[test]
    fn categories_come_in_the_order_of_their_first_texts() {
        let gathered = categories_from(&labelled(&[("1", Some("b")), ("2", Some("a")), ("3", Some(" b "))]), 10);
        assert_eq!(examples(&gathered), [("b", vec!["1", "3"]), ("a", vec!["2"])]);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let long = "x".repeat(MAX_EXAMPLE_CHARS + 1);
        let texts = [
            ("1", Some("a")),
            (" 1\n", Some("a")),
            ("2", None),
            ("2", Some(" ")),
            ("\t", Some("a")),
            (&long, Some("a")),
        ];
        let gathered = categories_from(&labelled(&texts), 10);
        assert_eq!(examples(&gathered), [("a", vec!["1"])]);
        let DatasetCategories { unlabelled, empty, too_long, repeated, surplus, .. } = gathered;
        assert_eq!((unlabelled, empty, too_long, repeated, surplus), (2, 1, 1, 1, 0));
    }

    #[test]
    fn a_text_that_two_categories_claim_is_given_to_neither_and_told_once() {
        let texts = [
            ("1", Some("a")),
            ("x", Some("a")),
            ("x", Some("b")),
            ("x", Some("c")),
            ("x", Some("a")),
            ("2", Some("b")),
        ];
        let gathered = categories_from(&labelled(&texts), 10);
        assert_eq!(examples(&gathered), [("a", vec!["1"]), ("b", vec!["2"]), ("c", vec![])]);
        let [Contradiction { text, first, then }] = &gathered.contradictions[..] else { panic!("{gathered:?}") };
        assert_eq!((text.as_str(), first, then), ("x", &(2, "a".to_owned()), &(3, "b".to_owned())));
    }

    #[test]
    fn of_too_many_examples_those_that_stay_are_spread_over_the_file() {
        let texts: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let texts: Vec<(&str, Option<&str>)> = texts.iter().map(|text| (text.as_str(), Some("a"))).collect();
        let gathered = categories_from(&labelled(&texts), 4);
        assert_eq!(examples(&gathered), [("a", vec!["0", "2", "5", "7"])]);
        assert_eq!(gathered.surplus, 6);
    }
}

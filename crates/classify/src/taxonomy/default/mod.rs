//! The built-in taxonomy.
//!
//! The examples are plain files, one per line, borrowed from the binary: a server that never classifies should not pay
//! for six thousand of them.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::{Taxonomy, file, scalar};

const CATEGORIES: &str = include_str!("categories.yaml");

const EXAMPLES: [(&str, &str); 5] = [
    ("math", include_str!("math.txt")),
    ("science", include_str!("science.txt")),
    ("technology", include_str!("technology.txt")),
    ("history", include_str!("history.txt")),
    ("general", include_str!("general.txt")),
];

/// The classifier trained on the examples. A test fails if the examples change without retraining.
pub(crate) const TRAINED: &[u8] = include_bytes!("trained");

pub(super) fn taxonomy() -> Taxonomy {
    let mut taxonomy = file::parse(CATEGORIES).expect("a test reads it");
    for (category, (name, examples)) in taxonomy.categories.iter_mut().zip(EXAMPLES) {
        debug_assert_eq!(category.name, name);
        category.examples = examples.lines().map(Cow::Borrowed).collect();
    }
    taxonomy
}

/// Start of a category in the file.
const ENTRY: &str = "\n  - name: ";

/// Categories and examples as one file, built on first use.
pub(super) fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        // Skips the header comment, which is about the separate files.
        let start = CATEGORIES.find("\nmodel:").map_or(0, |line| line + 1);
        let mut entries = CATEGORIES[start..].split(ENTRY);
        let mut text = String::from("# Built-in categories. Edit them to define your own.\n\n");
        text.push_str(entries.next().unwrap_or_default());
        for (entry, (_, examples)) in entries.zip(EXAMPLES) {
            text.push_str(ENTRY);
            text.push_str(entry.trim_end());
            text.push_str("\n    examples:");
            for example in examples.lines() {
                text.push_str("\n      - ");
                text.push_str(&scalar(example));
            }
        }
        text.push('\n');
        text
    });
    &TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_what_is_inside_is_read_as_what_is_inside() {
        assert_eq!(Taxonomy::parse(text()).unwrap(), taxonomy());
        assert!(text().starts_with("# Built-in categories"), "{}", &text()[..200]);
    }
    use std::collections::HashSet;

    #[test]
    fn c05_c06_the_default_categories_come_in_their_order_with_their_descriptions() {
        let taxonomy = taxonomy();
        let found: Vec<(&str, &str)> = taxonomy
            .categories
            .iter()
            .map(|category| (category.name.as_str(), category.description.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("math", "Mathematical and computational queries"),
                ("science", "Scientific concepts and queries"),
                ("technology", "Technology and computing topics"),
                ("history", "Historical events and topics"),
                ("general", "General questions and topics"),
            ]
        );
        assert_eq!(taxonomy.remainder, Some(4));
    }

    #[test]
    fn c07_every_default_prompt_is_a_role_and_a_list_of_guidance() {
        for category in taxonomy().categories {
            let lines: Vec<&str> = category.system_prompt.lines().collect();
            assert!(lines[0].starts_with("You are "), "{}", category.name);
            assert_eq!(lines.len(), 6, "{}", category.name);
            assert!(lines[1..].iter().all(|line| line.starts_with("- ")), "{}", category.name);
        }
    }

    #[test]
    fn c52_every_default_category_has_many_examples_and_none_twice() {
        let mut seen = HashSet::new();
        for category in taxonomy().categories {
            assert!(category.examples.len() >= 800, "{}: {}", category.name, category.examples.len());
            for example in category.examples {
                assert_eq!(example.trim(), example);
                assert!(!example.is_empty());
                assert!(seen.insert(example.to_lowercase()), "{example}");
            }
        }
    }
}

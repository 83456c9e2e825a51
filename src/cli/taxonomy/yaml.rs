//! Writes categories as a YAML taxonomy file.

use std::fmt::Write;

use super::from_dataset::DatasetCategory;
use crate::classify::taxonomy::scalar;

const HEADER: &str = "\
# Generated from labelled texts. Add a description, a system prompt, and words or patterns to each category;
# `corbie taxonomy new` without a file shows how, and `corbie taxonomy suggest` reports examples to review.

categories:
";

pub(super) fn taxonomy(categories: &[DatasetCategory]) -> String {
    let mut yaml = HEADER.to_owned();
    for DatasetCategory { name, examples, .. } in categories {
        // Writing to a string cannot fail.
        let _ = writeln!(yaml, "  - name: {}", scalar(name));
        if !examples.is_empty() {
            yaml.push_str("    examples:\n");
        }
        for example in examples {
            let _ = writeln!(yaml, "      - {}", scalar(example));
        }
    }
    yaml
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::classify::Taxonomy;

    fn category(name: &str, examples: &[&str]) -> DatasetCategory {
        DatasetCategory {
            name: name.into(),
            line: 1,
            examples: examples.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn plain_texts_have_no_quotes() {
        let yaml = taxonomy(&[
            category("billing", &["where's my invoice?", "1 + 1", "no", "Note: late", "a \"b\""]),
            category("o t", &[]),
        ]);
        let expected = "categories:
  - name: billing
    examples:
      - where's my invoice?
      - \"1 + 1\"
      - \"no\"
      - \"Note: late\"
      - \"a \\\"b\\\"\"
  - name: o t
";
        assert_eq!(yaml.strip_prefix(HEADER.strip_suffix("categories:\n").unwrap()).unwrap(), expected);
    }

    fn any_example() -> impl Strategy<Value = String> {
        let any = prop_oneof![
            any::<String>(),
            "[a-zA-Z0-9:#&*!|>'\"%@`?,.\\[\\]{}~ \t\n\r-]{1,40}",
            "(null|true|~|0x1f|1e5|---|\\.\\.\\.|\\.inf|=|<<|- a|a: b|a #b|\\? a|'|\")",
            "[\u{7f}-\u{a0}\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}\u{0}-\u{1f}a-c]{1,10}",
            "[a-z  ]{1000,3000}",
        ];
        any.prop_map(|text| text.trim().to_owned()).prop_filter("examples are not empty", |text| !text.is_empty())
    }

    fn any_name() -> impl Strategy<Value = String> {
        let any = prop_oneof!["\\PC{1,20}", "[a-z:# -]{1,20}", "(null|true|7|0.1|no)"];
        any.prop_map(|name| name.trim().to_owned())
            .prop_filter("names are words", |name| !name.is_empty() && !name.chars().any(char::is_control))
    }

    proptest! {
        #[test]
        fn written_taxonomy_is_read_back_unchanged(
            names in proptest::collection::btree_set(any_name(), 1..5),
            examples in proptest::collection::btree_map(any_example(), any::<proptest::sample::Index>(), 0..20),
        ) {
            let mut categories: Vec<DatasetCategory> = names.iter().map(|name| category(name, &[])).collect();
            let examples: BTreeMap<String, proptest::sample::Index> = examples;
            for (example, index) in examples {
                index.get_mut(&mut categories).examples.push(example);
            }
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("taxonomy.yaml");
            std::fs::write(&file, taxonomy(&categories)).unwrap();
            let read = Taxonomy::read(&file).unwrap();
            prop_assert_eq!(read.categories.len(), categories.len());
            for (read, written) in read.categories.iter().zip(&categories) {
                prop_assert_eq!(&read.name, &written.name);
                prop_assert_eq!(read.examples.iter().map(|text| text.as_ref()).collect::<Vec<&str>>(), written.examples.clone());
            }
        }
    }
}

//! Stable category indices across reloads.
//!
//! Clients cache the list for minutes, so an index must keep its meaning. A removed category keeps its index: it stays
//! listed as retired and no text is classified into it.

use super::{Category, Taxonomy};

pub(super) fn assign_stable_ids(taxonomy: Taxonomy, before: &Taxonomy) -> Taxonomy {
    let Taxonomy { path, categories, remainder, routing } = taxonomy;
    let remainder = remainder.map(|class| categories[class].name.clone());
    let mut fresh: Vec<Option<Category>> = categories.into_iter().map(Some).collect();
    let mut take = |name: &str| {
        let found = fresh.iter_mut().find(|category| category.as_ref().is_some_and(|category| category.name == name));
        found.and_then(Option::take)
    };
    let mut arranged: Vec<Category> =
        before.categories.iter().map(|old| take(&old.name).unwrap_or_else(|| retire(old))).collect();
    arranged.extend(fresh.into_iter().flatten());
    let remainder = remainder.and_then(|name| arranged.iter().position(|category| category.name == name));
    Taxonomy { path, categories: arranged, remainder, routing }
}

fn retire(old: &Category) -> Category {
    Category { retired: true, patterns: vec![], words: vec![], certain: vec![], examples: vec![], ..old.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taxonomy(names: &[&str]) -> Taxonomy {
        let entries: Vec<String> =
            names.iter().map(|name| format!("  - name: {name}\n    examples: [{name}]\n")).collect();
        Taxonomy::parse(&format!("categories:\n{}", entries.concat())).unwrap()
    }

    fn check(before: &[&str], now: &[&str], expected: &[(&str, bool)]) {
        let arranged = taxonomy(now).with_stable_ids(&taxonomy(before)).unwrap();
        let found: Vec<(&str, bool)> =
            arranged.categories.iter().map(|category| (category.name.as_str(), category.retired)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn c55_known_names_keep_their_places_and_new_ones_come_last() {
        check(&["a", "b", "c"], &["c", "x", "a", "b"], &[("a", false), ("b", false), ("c", false), ("x", false)]);
    }

    #[test]
    fn c55_the_place_of_a_category_that_is_gone_stays_empty() {
        check(&["a", "b", "c"], &["c", "x", "a"], &[("a", false), ("b", true), ("c", false), ("x", false)]);
        // The last one too; otherwise the next new category would reuse its index.
        check(&["a", "b", "c"], &["a", "b"], &[("a", false), ("b", false), ("c", true)]);
    }

    #[test]
    fn a_category_that_comes_back_has_its_place_again() {
        let gone = taxonomy(&["b", "c"]).with_stable_ids(&taxonomy(&["a", "b", "c"])).unwrap();
        assert!(gone.categories[0].retired);
        let back = taxonomy(&["c", "b", "a"]).with_stable_ids(&gone).unwrap();
        assert_eq!(back.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(!back.categories[0].retired);
    }

    #[test]
    fn places_that_are_given_count_whatever_was_before() {
        let places = ["c", "gone", "a"].map(str::to_owned);
        let arranged = taxonomy(&["a", "b", "c"]).with_shared_ids(&places).unwrap();
        let found: Vec<(&str, bool)> =
            arranged.categories.iter().map(|category| (category.name.as_str(), category.retired)).collect();
        assert_eq!(found, [("c", false), ("gone", true), ("a", false), ("b", false)]);
    }

    #[test]
    fn what_remains_is_found_in_its_new_place() {
        let arranged = taxonomy(&["general", "a"]).with_stable_ids(&taxonomy(&["a", "general"])).unwrap();
        assert_eq!(arranged.remainder, Some(1));
    }
}

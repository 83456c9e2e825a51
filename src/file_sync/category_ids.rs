//! Category indices shared by all instances. They must not depend on which changes an instance has processed (C-55).

/// Maximum number of indices, including those of removed categories.
const MAX_CATEGORY_IDS: usize = 1000;

/// The indices after a change: existing names keep theirs, new names are appended, and the index of a removed category
/// is not reused. If that exceeds the limit, removed categories are dropped.
pub(super) fn updated_ids(before: &[String], names: &[String]) -> Vec<String> {
    let mut places = before.to_vec();
    places.extend(names.iter().filter(|name| !before.contains(name)).cloned());
    if places.len() > MAX_CATEGORY_IDS.max(names.len()) {
        places.retain(|name| names.contains(name));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn known_names_keep_their_places_and_those_that_are_gone_leave_theirs_to_nobody() {
        assert_eq!(updated_ids(&[], &names("a b")), names("a b"));
        assert_eq!(updated_ids(&names("a b c"), &names("c x a")), names("a b c x"));
    }

    #[test]
    fn places_are_bounded() {
        let many: Vec<String> = (0..MAX_CATEGORY_IDS).map(|number| format!("old{number}")).collect();
        let next = updated_ids(&many, &names("new old7 old3"));
        assert_eq!(next, names("old3 old7 new"));
    }
}

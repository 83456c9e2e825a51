//! Fingerprints of configuration sections: detect changes without keeping the values, which may be secret.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use super::spanned_value::{SpannedValue, wipe_strings};

/// Hashes of sections, and of single providers as `providers.NAME`. The hash key is random for each process, so that
/// hashes only show equality.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionFingerprints(BTreeMap<String, u64>);

impl SectionFingerprints {
    pub(super) fn of(tree: &SpannedValue) -> SectionFingerprints {
        let mut digests = BTreeMap::new();
        let mut written = tree.to_json();
        for (name, section) in written.as_object().into_iter().flatten() {
            digests.insert(name.clone(), fingerprint(section));
            for (entry, value) in section.as_object().into_iter().flatten().filter(|_| name == "providers") {
                digests.insert(format!("{name}.{entry}"), fingerprint(value));
            }
        }
        wipe_strings(&mut written);
        SectionFingerprints(digests)
    }

    /// Whether a section or provider is equal, or missing in both.
    pub fn same(&self, other: &SectionFingerprints, key: &str) -> bool {
        self.0.get(key) == other.0.get(key)
    }

    /// The sections in which two configurations differ.
    pub fn differing<'a>(&'a self, other: &'a SectionFingerprints) -> impl Iterator<Item = &'a str> {
        let new = other.0.keys().filter(|key| !self.0.contains_key(*key));
        let sections = self.0.keys().chain(new).filter(|key| !key.contains('.'));
        sections.filter(|key| !self.same(other, key)).map(String::as_str)
    }
}

fn fingerprint(value: &serde_json::Value) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    // Hashes the values directly, without serializing them.
    KEY.get_or_init(RandomState::new).hash_one(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::diagnostic::Origin;
    use super::*;

    #[test]
    fn a12_a_change_shows_in_its_section_and_its_provider_alone() {
        let of = |json| SectionFingerprints::of(&SpannedValue::from_json(json, Origin::command_line()));
        let before = of(json!({ "trust": { "stdio": "trusted" }, "providers": { "a": { "api_key": "1" }, "b": {} } }));
        let after = of(
            json!({ "log": {}, "trust": { "stdio": "trusted" }, "providers": { "a": { "api_key": "2" }, "b": {} } }),
        );
        assert_eq!(before.differing(&after).collect::<Vec<_>>(), ["providers", "log"]);
        assert!(before.same(&after, "providers.b") && !before.same(&after, "providers.a"));
        assert!(before.same(&before.clone(), "providers.none"));
    }
}

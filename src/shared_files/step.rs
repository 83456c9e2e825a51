//! Three-way decision for a shared file: base (last agreed version), ours (local copy) and theirs (newest shared
//! version).

use crate::access::Stated;

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// No changes.
    Nothing,
    /// Both sides are equal, which was not recorded yet.
    Agree,
    /// Changed remotely, or missing locally: write the remote version locally.
    Bring,
    /// Changed locally, or missing remotely: publish the local version.
    Send,
    /// Changed on both sides, or the base is unknown.
    Meet,
}

/// `base` is the last version agreed on with this database, if any.
pub(super) fn next(base: Option<Stated<'_>>, ours: Option<&str>, theirs: Option<Stated<'_>>) -> Step {
    let (ours, theirs) = match (ours, theirs) {
        (None, None) => return Step::Nothing,
        // A missing file is different from an empty one.
        (None, Some(_)) => return Step::Bring,
        (Some(_), None) => return Step::Send,
        (Some(ours), Some(theirs)) => (ours, theirs),
    };
    if ours == theirs.text {
        return if base == Some(theirs) { Step::Nothing } else { Step::Agree };
    }
    match base {
        // The database was restored or lost its last commits: the local content is newer.
        Some(base) if base.number > theirs.number => Step::Send,
        Some(base) if base.number < theirs.number && base.text == ours => Step::Bring,
        Some(base) if base == theirs => Step::Send,
        _ => Step::Meet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_changed_it_decides_where_it_goes() {
        let said = |said: &'static str| {
            let (number, text) = said.split_once(' ').unwrap();
            Stated { number: number.parse().unwrap(), text }
        };
        for (base, ours, theirs, expected) in [
            (None, None, None, Step::Nothing),
            (Some("1 a"), Some("a"), Some("1 a"), Step::Nothing),
            (None, Some("a"), Some("1 a"), Step::Agree),
            (Some("1 a"), Some("b"), Some("2 b"), Step::Agree),
            (Some("1 a"), Some("a"), Some("2 a"), Step::Agree),
            (None, None, Some("1 a"), Step::Bring),
            (Some("1 a"), None, Some("1 a"), Step::Bring),
            (Some("1 a"), Some("a"), Some("2 b"), Step::Bring),
            (None, Some("a"), None, Step::Send),
            (Some("1 a"), Some("b"), Some("1 a"), Step::Send),
            (None, Some("a"), Some("1 b"), Step::Meet),
            (Some("1 a"), Some("b"), Some("2 c"), Step::Meet),
            // The database was restored, and may have advanced since.
            (Some("5 e"), Some("e"), Some("3 c"), Step::Send),
            (Some("5 e"), Some("f"), Some("3 c"), Step::Send),
            (Some("5 e"), Some("e"), Some("5 x"), Step::Meet),
        ] {
            assert_eq!(next(base.map(said), ours, theirs.map(said)), expected, "{base:?} {ours:?} {theirs:?}");
        }
    }
}

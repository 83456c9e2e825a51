//! Three-way decision for a shared file: base (last agreed version), ours (local copy) and theirs (newest shared
//! version).

use crate::access::FileRevision;

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncAction {
    /// No changes.
    Nothing,
    /// Both sides are equal, which was not recorded yet.
    RecordAgreement,
    /// Changed remotely, or missing locally: write the remote version locally.
    Pull,
    /// Changed locally, or missing remotely: publish the local version.
    Push,
    /// Changed on both sides, or the base is unknown.
    Merge,
}

/// `base` is the last version agreed on with this database, if any.
pub(super) fn next_action(
    base: Option<FileRevision<'_>>,
    ours: Option<&str>,
    theirs: Option<FileRevision<'_>>,
) -> SyncAction {
    let (ours, theirs) = match (ours, theirs) {
        (None, None) => return SyncAction::Nothing,
        // A missing file is different from an empty one.
        (None, Some(_)) => return SyncAction::Pull,
        (Some(_), None) => return SyncAction::Push,
        (Some(ours), Some(theirs)) => (ours, theirs),
    };
    if ours == theirs.text {
        return if base == Some(theirs) { SyncAction::Nothing } else { SyncAction::RecordAgreement };
    }
    match base {
        // The database was restored or lost its last commits: the local content is newer.
        Some(base) if base.number > theirs.number => SyncAction::Push,
        Some(base) if base.number < theirs.number && base.text == ours => SyncAction::Pull,
        Some(base) if base == theirs => SyncAction::Push,
        _ => SyncAction::Merge,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_changed_it_decides_where_it_goes() {
        let said = |said: &'static str| {
            let (number, text) = said.split_once(' ').unwrap();
            FileRevision { number: number.parse().unwrap(), text }
        };
        for (base, ours, theirs, expected) in [
            (None, None, None, SyncAction::Nothing),
            (Some("1 a"), Some("a"), Some("1 a"), SyncAction::Nothing),
            (None, Some("a"), Some("1 a"), SyncAction::RecordAgreement),
            (Some("1 a"), Some("b"), Some("2 b"), SyncAction::RecordAgreement),
            (Some("1 a"), Some("a"), Some("2 a"), SyncAction::RecordAgreement),
            (None, None, Some("1 a"), SyncAction::Pull),
            (Some("1 a"), None, Some("1 a"), SyncAction::Pull),
            (Some("1 a"), Some("a"), Some("2 b"), SyncAction::Pull),
            (None, Some("a"), None, SyncAction::Push),
            (Some("1 a"), Some("b"), Some("1 a"), SyncAction::Push),
            (None, Some("a"), Some("1 b"), SyncAction::Merge),
            (Some("1 a"), Some("b"), Some("2 c"), SyncAction::Merge),
            // The database was restored, and may have advanced since.
            (Some("5 e"), Some("e"), Some("3 c"), SyncAction::Push),
            (Some("5 e"), Some("f"), Some("3 c"), SyncAction::Push),
            (Some("5 e"), Some("e"), Some("5 x"), SyncAction::Merge),
        ] {
            assert_eq!(next_action(base.map(said), ours, theirs.map(said)), expected, "{base:?} {ours:?} {theirs:?}");
        }
    }
}

//! What is to be done about a file of which there are three: the one here, the newest that instances share, and the last
//! that both agreed on.

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nobody has anything new.
    Nothing,
    /// Both say the same, and that was not known.
    Agree,
    /// Others have changed it, or there is none here: theirs is to be written here.
    Bring,
    /// It was changed here, or nobody else has it: ours is to be written for all.
    Send,
    /// It was changed here and by others, or it is not known who did.
    Meet,
}

/// `base` is what was agreed on with this database, if anything ever was.
pub(super) fn next(base: Option<&str>, ours: Option<&str>, theirs: Option<&str>) -> Step {
    match (ours, theirs) {
        (None, None) => Step::Nothing,
        // One that is gone is not taken for one that says nothing.
        (None, Some(_)) => Step::Bring,
        (Some(_), None) => Step::Send,
        (Some(ours), Some(theirs)) if ours == theirs && base == Some(ours) => Step::Nothing,
        (Some(ours), Some(theirs)) if ours == theirs => Step::Agree,
        (Some(ours), Some(_)) if base == Some(ours) => Step::Bring,
        (Some(_), Some(theirs)) if base == Some(theirs) => Step::Send,
        (Some(_), Some(_)) => Step::Meet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_changed_it_decides_where_it_goes() {
        for (base, ours, theirs, expected) in [
            (None, None, None, Step::Nothing),
            (Some("a"), Some("a"), Some("a"), Step::Nothing),
            (None, Some("a"), Some("a"), Step::Agree),
            (Some("a"), Some("b"), Some("b"), Step::Agree),
            (None, None, Some("a"), Step::Bring),
            (Some("a"), None, Some("a"), Step::Bring),
            (Some("a"), Some("a"), Some("b"), Step::Bring),
            (None, Some("a"), None, Step::Send),
            (Some("a"), Some("b"), Some("a"), Step::Send),
            (None, Some("a"), Some("b"), Step::Meet),
            (Some("a"), Some("b"), Some("c"), Step::Meet),
        ] {
            assert_eq!(next(base, ours, theirs), expected, "{base:?} {ours:?} {theirs:?}");
        }
    }
}

//! What is to be done about a file of which there are three: the one here, the newest that instances share, and the last
//! that both agreed on.

use crate::access::Stated;

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
pub(super) fn next(base: Option<Stated<'_>>, ours: Option<&str>, theirs: Option<Stated<'_>>) -> Step {
    let (ours, theirs) = match (ours, theirs) {
        (None, None) => return Step::Nothing,
        // One that is gone is not taken for one that says nothing.
        (None, Some(_)) => return Step::Bring,
        (Some(_), None) => return Step::Send,
        (Some(ours), Some(theirs)) => (ours, theirs),
    };
    if ours == theirs.text {
        return if base == Some(theirs) { Step::Nothing } else { Step::Agree };
    }
    match base {
        // The database was restored, or lost its last commits: what is here came after what it has.
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
            // The database went back, and perhaps on from there.
            (Some("5 e"), Some("e"), Some("3 c"), Step::Send),
            (Some("5 e"), Some("f"), Some("3 c"), Step::Send),
            (Some("5 e"), Some("e"), Some("5 x"), Step::Meet),
        ] {
            assert_eq!(next(base.map(said), ours, theirs.map(said)), expected, "{base:?} {ours:?} {theirs:?}");
        }
    }
}

//! What is said about a place in the text, and stands in a part of its own.

use std::collections::HashMap;

use crate::ooxml::Tag;

/// Its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Remark {
    Footnote,
    Endnote,
    Comment,
}

/// Which block of the body refers to a remark, by the remark's number.
pub(super) type References = HashMap<(Remark, i64), usize>;

// === impl ===

impl Remark {
    pub(super) fn name(self) -> &'static str {
        match self {
            Remark::Footnote => "footnote",
            Remark::Endnote => "endnote",
            Remark::Comment => "comment",
        }
    }

    /// The remark that an element refers to.
    pub(super) fn referred(tag: &Tag<'_>) -> Option<(Remark, i64)> {
        let remark = match tag.name() {
            "footnoteReference" => Remark::Footnote,
            "endnoteReference" => Remark::Endnote,
            "commentReference" => Remark::Comment,
            _ => return None,
        };
        Some((remark, tag.number("id")?))
    }
}

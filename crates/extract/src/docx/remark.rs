//! Footnotes, endnotes and comments, which DOCX stores in separate parts.

use std::collections::HashMap;

use crate::ooxml::Tag;

/// The kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Remark {
    Footnote,
    Endnote,
    Comment,
}

/// Index of the body block that refers to a note, by note kind and id.
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

    /// The note that an element refers to.
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

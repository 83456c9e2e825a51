//! Footnotes, endnotes and comments, which DOCX stores in separate parts.

use std::collections::HashMap;

use crate::ooxml::Tag;

/// The kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NoteKind {
    Footnote,
    Endnote,
    Comment,
}

/// Index of the body block that refers to a note, by note kind and id.
pub(super) type References = HashMap<(NoteKind, i64), usize>;

// === impl ===

impl NoteKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            NoteKind::Footnote => "footnote",
            NoteKind::Endnote => "endnote",
            NoteKind::Comment => "comment",
        }
    }

    /// The note that an element refers to.
    pub(super) fn from_reference(tag: &Tag<'_>) -> Option<(NoteKind, i64)> {
        let remark = match tag.name() {
            "footnoteReference" => NoteKind::Footnote,
            "endnoteReference" => NoteKind::Endnote,
            "commentReference" => NoteKind::Comment,
            _ => return None,
        };
        Some((remark, tag.number("id")?))
    }
}

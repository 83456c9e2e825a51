//! The elements around a place on a page, as far as they matter to its text.

use dom_query::NodeId;

use super::grid::Grid;

/// Those elements, outermost first.
#[derive(Default)]
pub(super) struct Around {
    open: Vec<Open>,
    /// How many of them take all their text as one.
    solid: usize,
}

struct Open {
    node: NodeId,
    part: Part,
}

pub(super) enum Part {
    Block,
    Link,
    /// In the line, with words of its own.
    Drawing,
    List,
    /// Only its first text is the item; more text in it are paragraphs.
    Item {
        depth: u8,
        said: bool,
    },
    Heading(u8),
    Caption,
    Code,
    Field,
    Table(Grid),
    Head,
    Row,
    Cell {
        title: bool,
        columns: usize,
        rows: usize,
    },
    /// Whether it has words of its own about its picture, which then need not be described.
    Figure {
        captioned: bool,
    },
}

impl Part {
    pub(super) fn is_solid(&self) -> bool {
        matches!(self, Part::Heading(_) | Part::Caption | Part::Code | Part::Field | Part::Cell { .. })
    }
}

impl Around {
    pub(super) fn push(&mut self, node: NodeId, part: Part) {
        self.solid += usize::from(part.is_solid());
        self.open.push(Open { node, part });
    }

    /// What the node is, if it is the innermost of them.
    pub(super) fn innermost(&self, node: NodeId) -> Option<&Part> {
        self.open.last().filter(|open| open.node == node).map(|open| &open.part)
    }

    pub(super) fn pop(&mut self) -> Option<Part> {
        let part = self.open.pop()?.part;
        self.solid -= usize::from(part.is_solid());
        Some(part)
    }

    /// Whether one of them takes all its text as one.
    pub(super) fn is_solid(&self) -> bool {
        self.solid > 0
    }

    /// The table whose rows are being read.
    pub(super) fn grid(&mut self) -> Option<&mut Grid> {
        self.open.iter_mut().rev().find_map(|open| match &mut open.part {
            Part::Table(grid) => Some(grid),
            _ => None,
        })
    }

    /// The item whose text comes next: its depth, and whether it has said something.
    pub(super) fn item(&mut self) -> Option<(u8, &mut bool)> {
        let item = self.open.iter_mut().rev().find_map(|open| match &mut open.part {
            Part::Item { depth, said } => Some(Some((*depth, said))),
            Part::Table(_) | Part::List => Some(None),
            _ => None,
        });
        item.flatten()
    }

    /// How many lists there are.
    pub(super) fn lists(&self) -> u8 {
        let lists = self.open.iter().filter(|open| matches!(open.part, Part::List)).count();
        u8::try_from(lists).unwrap_or(u8::MAX)
    }

    pub(super) fn is_code(&self) -> bool {
        self.is_solid() && self.open.iter().rev().any(|open| matches!(open.part, Part::Code))
    }

    /// Whether a picture here has a caption.
    pub(super) fn is_captioned(&self) -> bool {
        self.open.iter().rev().any(|open| matches!(open.part, Part::Figure { captioned: true }))
    }
}

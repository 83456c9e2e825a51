//! Stack of open HTML elements that affect the text.

use dom_query::NodeId;

use super::grid::Grid;

/// The open elements, outermost first.
#[derive(Default)]
pub(super) struct Around {
    open: Vec<Open>,
    /// Number of open elements that collect all their text as one unit.
    solid: usize,
}

struct Open {
    node: NodeId,
    part: Part,
}

pub(super) enum Part {
    Block,
    Link,
    /// Inline, with its own text.
    Drawing,
    List,
    /// Only its first text is the list item; further text becomes paragraphs.
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
    /// Whether it has a caption; the alternative text of its image is then not needed.
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

    /// The role of the node, if it is the innermost open element.
    pub(super) fn innermost(&self, node: NodeId) -> Option<&Part> {
        self.open.last().filter(|open| open.node == node).map(|open| &open.part)
    }

    pub(super) fn pop(&mut self) -> Option<Part> {
        let part = self.open.pop()?.part;
        self.solid -= usize::from(part.is_solid());
        Some(part)
    }

    /// Whether any open element collects all its text as one unit.
    pub(super) fn is_solid(&self) -> bool {
        self.solid > 0
    }

    /// The innermost open table.
    pub(super) fn grid(&mut self) -> Option<&mut Grid> {
        self.open.iter_mut().rev().find_map(|open| match &mut open.part {
            Part::Table(grid) => Some(grid),
            _ => None,
        })
    }

    /// The innermost open list item: its depth, and whether it already has text.
    pub(super) fn item(&mut self) -> Option<(u8, &mut bool)> {
        let item = self.open.iter_mut().rev().find_map(|open| match &mut open.part {
            Part::Item { depth, said } => Some(Some((*depth, said))),
            Part::Table(_) | Part::List => Some(None),
            _ => None,
        });
        item.flatten()
    }

    /// Number of open lists.
    pub(super) fn lists(&self) -> u8 {
        let lists = self.open.iter().filter(|open| matches!(open.part, Part::List)).count();
        u8::try_from(lists).unwrap_or(u8::MAX)
    }

    pub(super) fn is_code(&self) -> bool {
        self.is_solid() && self.open.iter().rev().any(|open| matches!(open.part, Part::Code))
    }

    /// Whether an image at this position has a caption.
    pub(super) fn is_captioned(&self) -> bool {
        self.open.iter().rev().any(|open| matches!(open.part, Part::Figure { captioned: true }))
    }
}

//! Stack of open HTML elements that affect the text.

use dom_query::NodeId;

use super::table::HtmlTableBuilder;

/// The open elements, outermost first.
#[derive(Default)]
pub(super) struct OpenElements {
    open: Vec<OpenElement>,
    /// Number of open elements that collect all their text as one unit.
    solid: usize,
}

struct OpenElement {
    node: NodeId,
    role: ElementRole,
}

pub(super) enum ElementRole {
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
    Table(HtmlTableBuilder),
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

impl ElementRole {
    pub(super) fn is_solid(&self) -> bool {
        matches!(
            self,
            ElementRole::Heading(_)
                | ElementRole::Caption
                | ElementRole::Code
                | ElementRole::Field
                | ElementRole::Cell { .. }
        )
    }
}

impl OpenElements {
    pub(super) fn push(&mut self, node: NodeId, part: ElementRole) {
        self.solid += usize::from(part.is_solid());
        self.open.push(OpenElement { node, role: part });
    }

    /// The role of the node, if it is the innermost open element.
    pub(super) fn innermost(&self, node: NodeId) -> Option<&ElementRole> {
        self.open.last().filter(|open| open.node == node).map(|open| &open.role)
    }

    pub(super) fn pop(&mut self) -> Option<ElementRole> {
        let part = self.open.pop()?.role;
        self.solid -= usize::from(part.is_solid());
        Some(part)
    }

    /// Whether any open element collects all its text as one unit.
    pub(super) fn is_solid(&self) -> bool {
        self.solid > 0
    }

    /// The innermost open table.
    pub(super) fn grid(&mut self) -> Option<&mut HtmlTableBuilder> {
        self.open.iter_mut().rev().find_map(|open| match &mut open.role {
            ElementRole::Table(grid) => Some(grid),
            _ => None,
        })
    }

    /// The innermost open list item: its depth, and whether it already has text.
    pub(super) fn item(&mut self) -> Option<(u8, &mut bool)> {
        let item = self.open.iter_mut().rev().find_map(|open| match &mut open.role {
            ElementRole::Item { depth, said } => Some(Some((*depth, said))),
            ElementRole::Table(_) | ElementRole::List => Some(None),
            _ => None,
        });
        item.flatten()
    }

    /// Number of open lists.
    pub(super) fn lists(&self) -> u8 {
        let lists = self.open.iter().filter(|open| matches!(open.role, ElementRole::List)).count();
        u8::try_from(lists).unwrap_or(u8::MAX)
    }

    pub(super) fn is_code(&self) -> bool {
        self.is_solid() && self.open.iter().rev().any(|open| matches!(open.role, ElementRole::Code))
    }

    /// Whether an image at this position has a caption.
    pub(super) fn is_captioned(&self) -> bool {
        self.open.iter().rev().any(|open| matches!(open.role, ElementRole::Figure { captioned: true }))
    }
}

//! Converts the HTML tree to blocks.
//!
//! One pass in document order, without recursion. Text accumulates until a block element begins or ends. Inside
//! headings, captions and cells, block elements only separate words.
//!
//! Invisible content is left out: scripts, styles, templates, and elements with a `hidden` attribute or inline
//! `display:none`. Style sheets are ignored. `aria-hidden` elements are included because they are visible.

use dom_query::{Document, Element, NodeData, NodeId};
use html5ever::{local_name, ns};

use super::ancestors::{ElementRole, OpenElements};
use super::element_kind::{self, ElementKind};
use super::table::HtmlTableBuilder;
use crate::{Block, BlockKind, Error, Limits};

/// How much of a page to extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentScope {
    All,
    /// Omits navigation and image substitutes inside an article: paragraphs that consist only of links, and alternative
    /// texts of images. Over 181 articles that raises F1 from .945 to .953.
    Article,
}

/// The blocks of a page.
pub(super) fn blocks(document: &Document, wanted: ContentScope, limits: &Limits) -> Result<Vec<Block>, Error> {
    let mut walk = BlockBuilder {
        document,
        limits,
        wanted,
        characters: 0,
        links: 0,
        linked: 0,
        raised: false,
        ancestors: OpenElements::default(),
        text: String::new(),
        after: Vec::new(),
        blocks: Vec::new(),
    };
    let tree = &document.tree;
    let root = tree.root_id();
    let mut node = root;
    loop {
        let inside = walk.enter(node)?;
        if let Some(child) = tree.query_node(&node, |node| node.first_child).flatten().filter(|_| inside) {
            node = child;
            continue;
        }
        loop {
            walk.leave(node)?;
            let (sibling, parent) = tree.query_node_or(&node, (None, None), |node| (node.next_sibling, node.parent));
            match (sibling, parent) {
                (Some(sibling), _) if node != root => {
                    node = sibling;
                    break;
                }
                (None, Some(parent)) if node != root => node = parent,
                _ => {
                    walk.flush();
                    return Ok(walk.blocks);
                }
            }
        }
    }
}

struct BlockBuilder<'a> {
    document: &'a Document,
    limits: &'a Limits,
    wanted: ContentScope,
    characters: u64,
    /// Number of open links at this position, and number of text bytes inside a link.
    links: usize,
    linked: usize,
    /// The next text is a superscript after a digit.
    raised: bool,
    ancestors: OpenElements,
    /// Pending text of the current block.
    text: String,
    /// Blocks that follow the pending text: an image inside a sentence does not split it.
    after: Vec<Block>,
    blocks: Vec<Block>,
}

impl BlockBuilder<'_> {
    /// Processes a node. Returns whether to descend into it.
    fn enter(&mut self, id: NodeId) -> Result<bool, Error> {
        let document = self.document;
        let inside = document.tree.query_node(&id, |node| match &node.data {
            NodeData::Text { contents } => {
                self.characters += contents.len() as u64;
                if self.links > 0 {
                    self.linked += contents.trim().len();
                }
                self.push_text(contents);
                Ok(false)
            }
            NodeData::Element(element) => self.element(id, element),
            NodeData::Document | NodeData::Fragment => Ok(true),
            _ => Ok(false),
        });
        if self.characters > self.limits.characters {
            return Err(Error::TooMuch { what: "characters", most: self.limits.characters });
        }
        self.limits.check_blocks(self.blocks.len() + self.after.len())?;
        inside.unwrap_or(Ok(false))
    }

    fn element(&mut self, id: NodeId, element: &Element) -> Result<bool, Error> {
        let place = element_kind::element_kind(&element.name.local);
        if place == ElementKind::Ignored || element_kind::is_hidden(element) {
            return Ok(false);
        }
        let part = match place {
            ElementKind::Inline => {
                self.line(id, element);
                return Ok(true);
            }
            ElementKind::Link => {
                self.links += 1;
                self.ancestors.push(id, ElementRole::Link);
                return Ok(true);
            }
            ElementKind::Break => {
                self.line_break();
                return Ok(false);
            }
            ElementKind::Picture => {
                self.picture(element);
                return Ok(false);
            }
            ElementKind::Input => {
                if let Some(value) = element_kind::value(element) {
                    self.push_attribute_text(BlockKind::Field, value);
                }
                return Ok(false);
            }
            _ if self.ancestors.is_solid() => ElementRole::Block,
            ElementKind::Heading(level) => ElementRole::Heading(level),
            ElementKind::List => ElementRole::List,
            ElementKind::Item => ElementRole::Item { depth: self.ancestors.lists().saturating_sub(1), said: false },
            ElementKind::Definition => ElementRole::Item { depth: self.ancestors.lists(), said: false },
            ElementKind::Caption => ElementRole::Caption,
            ElementKind::Code => ElementRole::Code,
            ElementKind::Field => ElementRole::Field,
            ElementKind::Figure => ElementRole::Figure {
                captioned: element_kind::contains_element(self.document, id, &local_name!("figcaption")),
            },
            ElementKind::Table if !element_kind::is_layout(self.document, id, element) => {
                ElementRole::Table(HtmlTableBuilder::default())
            }
            ElementKind::Head if self.ancestors.grid().is_some() => ElementRole::Head,
            ElementKind::Row if self.ancestors.grid().is_some() => ElementRole::Row,
            ElementKind::Cell { title } if self.ancestors.grid().is_some() => ElementRole::Cell {
                title,
                columns: element_kind::number(element, "colspan"),
                rows: element_kind::number(element, "rowspan"),
            },
            _ => ElementRole::Block,
        };
        self.separate_words();
        match &part {
            ElementRole::Head => self.ancestors.grid().into_iter().for_each(|grid| grid.head = true),
            ElementRole::Row => self.ancestors.grid().into_iter().for_each(HtmlTableBuilder::start_row),
            _ => {}
        }
        self.ancestors.push(id, part);
        Ok(true)
    }

    /// Inline elements belong to the surrounding words; inside drawings and formulas they are separate words.
    fn line(&mut self, id: NodeId, element: &Element) {
        self.raised = element.name.local == local_name!("sup") && self.text.ends_with(|c: char| c.is_ascii_digit());
        let is_drawing = element.name.local == local_name!("svg");
        // A formula is adjacent to its brackets, and a drawing may split a word into several elements.
        let is_close = element.name.ns == ns!(html) || matches!(&*element.name.local, "math" | "tspan");
        let follows = || self.document.tree.query_node_or(&id, false, |node| node.prev_sibling.is_some());
        if is_drawing || (!is_close && follows()) {
            self.push_text(" ");
        }
        if is_drawing {
            self.ancestors.push(id, ElementRole::Drawing);
        }
    }

    fn leave(&mut self, id: NodeId) -> Result<(), Error> {
        let Some(part) = self.ancestors.innermost(id) else { return Ok(()) };
        // The pending text belongs to the element that ends.
        if !matches!(part, ElementRole::Link | ElementRole::Drawing) && !part.is_solid() {
            self.separate_words();
        }
        let Some(part) = self.ancestors.pop() else { return Ok(()) };
        match part {
            ElementRole::Heading(level) => self.block(BlockKind::Heading { level }),
            ElementRole::Caption => self.block(BlockKind::Caption),
            ElementRole::Field => self.block(BlockKind::Field),
            ElementRole::Code => self.block(BlockKind::Code),
            ElementRole::Table(grid) => self.blocks.extend(grid.finish().map(Block::table)),
            ElementRole::Head => self.ancestors.grid().into_iter().for_each(|grid| grid.head = false),
            ElementRole::Row => {
                let limits = self.limits;
                self.ancestors.grid().map_or(Ok(()), |grid| grid.end_row(limits))?;
            }
            ElementRole::Cell { title, columns, rows } => {
                let text = in_one_line(&std::mem::take(&mut self.text));
                self.linked = 0;
                if let Some(grid) = self.ancestors.grid() {
                    grid.cell(text, title, columns, rows);
                }
            }
            ElementRole::Link => self.links -= 1,
            ElementRole::Drawing => self.push_text(" "),
            ElementRole::Block | ElementRole::List | ElementRole::Item { .. } | ElementRole::Figure { .. } => {}
        }
        Ok(())
    }

    /// Appends text and collapses whitespace.
    fn push_text(&mut self, text: &str) {
        // A million is 10^6 and not 106.
        if std::mem::take(&mut self.raised) && text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '−'))
        {
            self.text.push('^');
        }
        if self.ancestors.is_code() {
            self.text.push_str(text);
            return;
        }
        let mut words = text.split(char::is_whitespace);
        if let Some(first) = words.next() {
            push_word(&mut self.text, first);
        }
        for word in words {
            if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
                self.text.push(' ');
            }
            push_word(&mut self.text, word);
        }
    }

    fn line_break(&mut self) {
        if !self.ancestors.is_solid() && self.text.ends_with('\n') {
            self.flush();
            return;
        }
        while self.text.ends_with(' ') {
            self.text.pop();
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Separates words, or ends the block, where a block element begins or ends.
    fn separate_words(&mut self) {
        if !self.ancestors.is_solid() {
            self.flush();
            return;
        }
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(if self.ancestors.is_code() { '\n' } else { ' ' });
        }
    }

    fn flush(&mut self) {
        let kind = match self.ancestors.item() {
            Some((depth, said)) if !*said => {
                *said = !self.text.trim().is_empty();
                BlockKind::ListItem { depth }
            }
            _ => BlockKind::Paragraph,
        };
        self.block(kind);
    }

    fn block(&mut self, kind: BlockKind) {
        let text = std::mem::take(&mut self.text);
        let text = match kind {
            BlockKind::Code => text.trim_matches('\n').trim_end().to_owned(),
            BlockKind::Heading { .. } => in_one_line(&text),
            _ => text.trim().to_owned(),
        };
        let linked = std::mem::take(&mut self.linked);
        let leads_away =
            self.wanted == ContentScope::Article && kind == BlockKind::Paragraph && linked * 10 >= text.len() * 9;
        if !leads_away && !text.trim().is_empty() {
            self.blocks.push(Block::new(kind, text));
        }
        self.blocks.append(&mut self.after);
    }

    /// Adds attribute text as a separate block, or inline where no separate block is possible.
    fn push_attribute_text(&mut self, kind: BlockKind, text: String) {
        self.characters += text.len() as u64;
        if self.ancestors.is_solid() {
            self.push_text(" ");
            self.push_text(&text);
            self.push_text(" ");
        } else {
            self.after.push(Block::new(kind, text));
        }
    }

    fn picture(&mut self, element: &Element) {
        if self.wanted == ContentScope::Article {
            return;
        }
        if let Some(text) = element_kind::description(element).filter(|_| !self.ancestors.is_captioned()) {
            self.push_attribute_text(BlockKind::Caption, text);
        }
    }
}

/// Appends a word without soft hyphens and zero-width characters.
fn push_word(text: &mut String, word: &str) {
    const INVISIBLE_CHARS: [char; 3] = ['\u{ad}', '\u{200b}', '\u{feff}'];
    if word.is_ascii() || !word.contains(INVISIBLE_CHARS) {
        text.push_str(word);
    } else {
        text.extend(word.chars().filter(|letter| !INVISIBLE_CHARS.contains(letter)));
    }
}

pub(super) fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

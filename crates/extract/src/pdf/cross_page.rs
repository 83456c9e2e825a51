//! Cross-page analysis: headings, running headers and footers.
//!
//! Headings are recognized relative to the text size of the whole file, and headers and footers by repetition on other
//! pages. A page is delayed until the next two are laid out, so a long file needs no more memory than a short one.

use std::collections::{HashMap, VecDeque};

use super::blocks::LineGroup;
use super::bookmarks::Bookmarks;
use super::layout::PagePart;
use crate::outline::OpenHeadings;
use crate::{Block, BlockKind, Page};

/// Number of pages before and after for header comparison. Two, because left and right pages may differ.
const NEIGHBOUR_PAGES: usize = 2;
/// Fraction of the page height at the top and bottom for headers and footers.
const EDGE_SHARE: f32 = 0.12;
/// Minimum size of a heading, relative to the text.
const MIN_HEADING_SCALE: f32 = 1.12;

/// A page that waits for the pages after it.
#[derive(Debug)]
pub(super) struct PageDraft {
    pub(super) page: Page,
    pub(super) height: f32,
    pub(super) parts: Vec<PagePart>,
    /// Form fields and comments.
    pub(super) annotations: Vec<Block>,
}

/// Waiting pages, and statistics of the file so far.
#[derive(Debug, Default)]
pub(super) struct CrossPageState {
    outline: Bookmarks,
    waiting: VecDeque<PageDraft>,
    /// Edge texts of the finished pages.
    before: VecDeque<Vec<EdgeText>>,
    sizes: FontSizeStats,
    /// Indentation of the current list items, one per depth.
    items: Vec<f32>,
    /// The open headings.
    headings: OpenHeadings,
}

/// Number of characters by size, in half points.
#[derive(Debug, Default)]
struct FontSizeStats {
    counts: HashMap<u32, (u64, u64)>,
    /// Heading sizes, largest first.
    headings: Vec<u32>,
}

/// A text at the edge of a page with normalized digits, and its height on the page.
type EdgeText = (String, f32);

impl CrossPageState {
    pub(super) fn new(outline: Bookmarks) -> CrossPageState {
        CrossPageState { outline, ..CrossPageState::default() }
    }

    /// Adds a page; returns a page that has waited long enough.
    pub(super) fn push(&mut self, draft: PageDraft) -> Option<Page> {
        self.sizes.add(&draft);
        self.waiting.push_back(draft);
        if self.waiting.len() > NEIGHBOUR_PAGES { self.pop() } else { None }
    }

    /// Finishes the next waiting page.
    pub(super) fn pop(&mut self) -> Option<Page> {
        let draft = self.waiting.pop_front()?;
        let around: Vec<EdgeText> =
            self.before.iter().flatten().cloned().chain(self.waiting.iter().flat_map(edges)).collect();
        self.before.push_back(edges(&draft));
        if self.before.len() > NEIGHBOUR_PAGES {
            self.before.pop_front();
        }
        let PageDraft { mut page, height, parts, annotations: laid_over } = draft;
        for part in parts {
            let mut block = match part {
                PagePart::Table(table) => Block::table(table),
                PagePart::Text(group) => {
                    let kind = self.kind(&group, page.number, height, &around);
                    Block::new(kind, group.text)
                }
            };
            self.headings.assign_path(&mut block);
            page.blocks.push(block);
        }
        for mut block in laid_over {
            self.headings.assign_path(&mut block);
            page.blocks.push(block);
        }
        Some(page)
    }

    fn kind(&mut self, group: &LineGroup, page: u32, height: f32, around: &[EdgeText]) -> BlockKind {
        if group.artifact || edge(group, height).is_some_and(|edge| around.iter().any(|other| same(&edge, other))) {
            return BlockKind::Furniture;
        }
        if let Some(level) = self.outline.level(&group.text, page) {
            return BlockKind::Heading { level };
        }
        if let Some(level) = self.sizes.heading(group) {
            return BlockKind::Heading { level };
        }
        if group.list_item {
            return BlockKind::ListItem { depth: self.depth(group.x0) };
        }
        self.items.clear();
        if group.mono && group.lines > 1 { BlockKind::Code } else { BlockKind::Paragraph }
    }

    /// Nesting depth of a list item, by indentation.
    fn depth(&mut self, x: f32) -> u8 {
        self.items.retain(|other| *other < x - 3.0);
        let depth = self.items.len();
        self.items.push(x);
        depth.min(9) as u8
    }
}

fn edges(draft: &PageDraft) -> Vec<EdgeText> {
    let groups = draft.parts.iter().filter_map(|part| match part {
        PagePart::Text(group) => Some(group),
        PagePart::Table(_) => None,
    });
    groups.filter_map(|group| edge(group, draft.height)).collect()
}

fn edge(group: &LineGroup, height: f32) -> Option<EdgeText> {
    let at_edge = group.bottom < EDGE_SHARE * height || group.top > (1.0 - EDGE_SHARE) * height;
    let short = group.text.len() < 200 && group.lines <= 3;
    let letters = || group.text.chars().filter(|letter| !letter.is_whitespace());
    let digits_aside = || letters().map(|letter| if letter.is_ascii_digit() { '0' } else { letter });
    (group.upright && at_edge && short).then(|| {
        let mut text: String = digits_aside().collect();
        // Page numbers grow longer.
        while text.contains("00") {
            text = text.replace("00", "0");
        }
        (text, group.top)
    })
}

fn same((text, top): &EdgeText, (other, other_top): &EdgeText) -> bool {
    text == other && (top - other_top).abs() < 6.0
}

impl FontSizeStats {
    fn add(&mut self, draft: &PageDraft) {
        for part in &draft.parts {
            let PagePart::Text(group) = part else { continue };
            let (all, bold) = self.counts.entry(half_points(group.size)).or_default();
            let count = group.text.len() as u64;
            *all += count;
            *bold += if group.bold { count } else { 0 };
        }
        let text = self.text();
        for part in &draft.parts {
            let PagePart::Text(group) = part else { continue };
            let size = half_points(group.size);
            if stands_out(group) && size as f32 >= MIN_HEADING_SCALE * text.0 as f32 && !self.headings.contains(&size) {
                self.headings.push(size);
            }
        }
        self.headings.sort_unstable_by(|a, b| b.cmp(a));
        self.headings.truncate(16);
    }

    /// The body text size, and whether it is bold.
    fn text(&self) -> (u32, bool) {
        let most = self.counts.iter().max_by_key(|(size, (all, _))| (*all, **size));
        most.map_or((0, false), |(size, (all, bold))| (*size, 2 * bold > *all))
    }

    /// The heading level of a group, by its appearance.
    fn heading(&self, group: &LineGroup) -> Option<u8> {
        let (text, bold) = self.text();
        let size = half_points(group.size);
        let larger = size as f32 >= MIN_HEADING_SCALE * text as f32;
        let bolder = group.bold && !bold && size >= text && group.lines <= 2;
        let ends_as_sentence = group.text.ends_with(['.', ',', ';']);
        if !stands_out(group) || !(larger || (bolder && !ends_as_sentence)) {
            return None;
        }
        let above =
            self.headings.iter().filter(|other| **other > size && **other as f32 >= MIN_HEADING_SCALE * text as f32);
        Some((above.count() as u8 + 1).min(6))
    }
}

fn half_points(size: f32) -> u32 {
    (size * 2.0).round() as u32
}

/// Headings are short and contain letters.
fn stands_out(group: &LineGroup) -> bool {
    let letters = group.text.chars().filter(|letter| letter.is_alphabetic()).take(3).count();
    group.lines <= 3 && group.text.len() <= 200 && letters >= 2 && !group.mono
}

//! Markdown reader: blocks, without inline markup.

use pulldown_cmark::{Event, HeadingLevel, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use crate::{Block, BlockKind, Error, Limits, Metadata, Table};

/// State of the conversion.
#[derive(Default)]
struct MarkdownReader {
    blocks: Vec<Block>,
    text: String,
    /// Number of open lists.
    lists: usize,
    /// For each open item, whether it already has text.
    items: Vec<bool>,
    table: Table,
    code: bool,
    note: bool,
    /// Inside the front matter.
    front: bool,
}

pub(super) fn blocks(text: &str, limits: &Limits, metadata: &mut Metadata) -> Result<Vec<Block>, Error> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut writer = MarkdownReader::default();
    for event in Parser::new_ext(text, options) {
        limits.check_blocks(writer.blocks.len())?;
        match event {
            Event::Start(tag) => writer.start(tag),
            Event::End(tag) => writer.end(tag, metadata),
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                writer.text.push_str(&text);
            }
            Event::SoftBreak if writer.code => writer.text.push('\n'),
            Event::SoftBreak => writer.text.push(' '),
            Event::HardBreak => writer.text.push('\n'),
            // HTML elements are markup too; the content between them arrives as text.
            Event::InlineHtml(html) if html.starts_with("<br") => writer.text.push('\n'),
            Event::Html(html) => writer.text.push_str(&without_tags(&html)),
            Event::Rule => writer.flush(),
            Event::InlineHtml(_) | Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
        }
    }
    writer.flush();
    Ok(writer.blocks)
}

impl MarkdownReader {
    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::TableCell => return,
            Tag::TableRow | Tag::TableHead => {
                self.table.rows.push(Vec::new());
                return;
            }
            _ => self.flush(),
        }
        match tag {
            Tag::List(_) => self.lists += 1,
            Tag::Item => self.items.push(false),
            Tag::CodeBlock(_) => self.code = true,
            Tag::FootnoteDefinition(_) => self.note = true,
            Tag::MetadataBlock(MetadataBlockKind::YamlStyle) => self.front = true,
            Tag::Table(_) => self.table = Table { header_rows: 1, ..Table::default() },
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, metadata: &mut Metadata) {
        match tag {
            TagEnd::Heading(level) => self.block(BlockKind::Heading { level: number(level) }),
            TagEnd::CodeBlock => {
                self.block(BlockKind::Code);
                self.code = false;
            }
            TagEnd::Item => {
                self.flush();
                self.items.pop();
            }
            TagEnd::List(_) => self.lists = self.lists.saturating_sub(1),
            TagEnd::FootnoteDefinition => {
                self.flush();
                self.note = false;
            }
            TagEnd::MetadataBlock(_) => {
                front_matter(&std::mem::take(&mut self.text), metadata);
                self.front = false;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text).trim().to_owned();
                self.table.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.blocks.push(Block::table(std::mem::take(&mut self.table))),
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::BlockQuote(_) => self.flush(),
            _ => {}
        }
    }

    fn flush(&mut self) {
        if self.front {
            return;
        }
        let depth = u8::try_from(self.lists.saturating_sub(1)).unwrap_or(u8::MAX);
        let kind = match self.items.last_mut() {
            _ if self.note => BlockKind::Note,
            Some(said) if !*said => {
                *said = !self.text.trim().is_empty();
                BlockKind::ListItem { depth }
            }
            _ => BlockKind::Paragraph,
        };
        self.block(kind);
    }

    fn block(&mut self, kind: BlockKind) {
        let text = std::mem::take(&mut self.text);
        let text = if kind == BlockKind::Code { text.trim_matches('\n').trim_end() } else { text.trim() };
        if !text.is_empty() {
            self.blocks.push(Block::new(kind, text));
        }
    }
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Front matter: `name: value` lines before the text, as written by many tools.
fn front_matter(text: &str, metadata: &mut Metadata) {
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim().trim_matches(['"', '\'']).trim();
        let field = match name.trim() {
            "title" => &mut metadata.title,
            "author" => &mut metadata.author,
            "description" | "summary" => &mut metadata.subject,
            "lang" | "language" => &mut metadata.language,
            "date" | "created" => &mut metadata.created,
            "updated" | "modified" | "lastmod" => &mut metadata.modified,
            _ => continue,
        };
        if !value.is_empty() {
            *field = Some(value.to_owned());
        }
    }
}

/// A line of HTML within Markdown, without tags.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    for (index, piece) in html.split('<').enumerate() {
        match piece.split_once('>') {
            Some((_, after)) if index > 0 => text.push_str(after),
            _ if index > 0 => {}
            _ => text.push_str(piece),
        }
    }
    text
}

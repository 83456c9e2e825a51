//! Markdown output.
//!
//! Headings, lists, tables and code keep their structure; everything else is plain text. Headers and footers are
//! omitted. A comment with the page number separates pages: it can be searched for and is invisible in the rendered
//! text.

use std::fmt::Write;

use crate::{Block, BlockKind, Document, Page, Table};

/// Short rows are padded with empty cells as long as the table grows at most by this factor. Markdown does not require
/// the padding, and one long row among many short ones would cost their product.
const MAX_PADDING_FACTOR: usize = 8;

/// Converts a document to Markdown that ends with one line break.
pub fn markdown(document: &Document) -> String {
    let mut out = String::new();
    for page in &document.pages {
        if document.pages.len() > 1 {
            start_page(&mut out, page);
        }
        // Depths of the enclosing list items. An item indented by more than one level would be rendered as code.
        let mut items: Vec<u8> = Vec::new();
        for block in page.blocks.iter().filter(|block| block.kind != BlockKind::Furniture) {
            let BlockKind::ListItem { depth } = block.kind else {
                write_separator(&mut out, "\n\n");
                write_block(&mut out, block);
                items.clear();
                continue;
            };
            // Items of one list are not separated by empty lines.
            write_separator(&mut out, if items.is_empty() { "\n\n" } else { "\n" });
            items.retain(|above| *above < depth);
            write_item(&mut out, items.len(), &block.text);
            items.push(depth);
        }
    }
    let mut out = out.trim_end().to_owned();
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn start_page(out: &mut String, page: &Page) {
    write_separator(out, "\n\n");
    let mut name = page.name.as_deref().map(|name| format!(": {}", line(name))).unwrap_or_default();
    // Two hyphens would end the comment. Of three hyphens, the first replacement leaves two.
    while name.contains("--") {
        name = name.replace("--", "- -");
    }
    let _ = write!(out, "<!-- page {}{name} -->", page.number);
}

fn write_separator(out: &mut String, by: &str) {
    if !out.is_empty() {
        out.truncate(out.trim_end().len());
        out.push_str(by);
    }
}

fn write_block(out: &mut String, block: &Block) {
    match &block.kind {
        BlockKind::Heading { level } => {
            out.extend(std::iter::repeat_n('#', usize::from(*level)));
            let _ = write!(out, " {}", escape_closing_hashes(&line(&block.text)));
        }
        BlockKind::ListItem { depth } => write_item(out, usize::from(*depth), &block.text),
        BlockKind::Table(table) if !table.rows.is_empty() => write_table(out, table),
        BlockKind::Code => write_code(out, &block.text),
        BlockKind::Caption => {
            let _ = write!(out, "*{}*", line(&block.text).replace('*', "\\*"));
        }
        BlockKind::Note | BlockKind::Comment => {
            let _ = write!(out, "> {}", escape_markdown(&block.text).replace('\n', "\n> "));
        }
        BlockKind::Paragraph | BlockKind::Field | BlockKind::Image | BlockKind::Table(_) => {
            out.push_str(&escape_markdown(&block.text))
        }
        BlockKind::Furniture => {}
    }
}

fn write_item(out: &mut String, depth: usize, text: &str) {
    let indent = "  ".repeat(depth);
    let text = escape_markdown(text).replace('\n', &format!("\n{indent}  "));
    let _ = write!(out, "{indent}- {text}");
}

/// A Markdown table always has one header row. It is empty if the document has none; additional header rows become the
/// first data rows.
fn write_table(out: &mut String, table: &Table) {
    let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let row = |out: &mut String, row: &[String], columns: usize| {
        out.push('|');
        for column in 0..columns {
            let cell = row.get(column).map(String::as_str).unwrap_or_default();
            let _ = write!(out, " {} |", line(cell).replace('\\', "\\\\").replace('|', "\\|"));
        }
        out.push('\n');
    };
    let (titles, values) = match table.header_rows {
        0 => (&[][..], table.rows.as_slice()),
        _ => (table.rows[0].as_slice(), &table.rows[1..]),
    };
    row(out, titles, columns);
    out.push('|');
    out.push_str(&" --- |".repeat(columns));
    out.push('\n');
    let cells: usize = table.rows.iter().map(Vec::len).sum();
    let is_even = table.rows.len().saturating_mul(columns) <= cells.saturating_mul(MAX_PADDING_FACTOR);
    for values in values {
        row(out, values, if is_even { columns } else { values.len() });
    }
}

/// Writes a code block with fences longer than any run of backticks inside.
fn write_code(out: &mut String, text: &str) {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = write!(out, "{fence}\n{text}\n{fence}");
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes markup at the start of a line. Inside a line, an occasional stray asterisk does less harm than many
/// backslashes.
fn escape_markdown(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| escape_line(line.trim())).collect();
    lines.join("\n")
}

fn escape_line(line: &str) -> String {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = digits > 0
        && matches!(line.as_bytes().get(digits), Some(b'.' | b')'))
        && line.as_bytes().get(digits + 1).is_none_or(u8::is_ascii_whitespace);
    let is_marked = line.starts_with(['#', '>', '|', '<'])
        || ["- ", "+ ", "* ", "```", "~~~", "---", "***", "==="].iter().any(|mark| line.starts_with(mark))
        || is_drawn(line)
        || (line.starts_with('[') && line.contains("]:"));
    if is_number {
        format!("{}\\{}", &line[..digits], &line[digits..])
    } else if is_marked {
        format!("\\{line}")
    } else {
        line.to_owned()
    }
}

/// Whether a line consists of one repeated mark: it would be a thematic break or turn the line above into a heading.
fn is_drawn(line: &str) -> bool {
    let mut marks = line.chars().filter(|letter| *letter != ' ');
    let mark = marks.next().filter(|mark| "=-_*+".contains(*mark));
    mark.is_some_and(|mark| marks.all(|other| other == mark))
}

/// Escapes trailing `#` characters, which Markdown would treat as a closing sequence.
fn escape_closing_hashes(heading: &str) -> String {
    let text = heading.trim_end_matches('#');
    let is_closing = text.len() < heading.len() && (text.is_empty() || text.ends_with(' '));
    if is_closing { format!("{text}\\{}", &heading[text.len()..]) } else { heading.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExtractionMethod, Format, Metadata};

    fn check(pages: Vec<Vec<Block>>, wanted: &str) {
        let pages = (1..).zip(pages).map(|(number, blocks)| Page { number, blocks, ..Page::default() }).collect();
        let (metadata, method) = (Metadata::default(), ExtractionMethod::default());
        let document = Document { format: Format::Text, pages, metadata, method, warnings: Vec::new() };
        assert_eq!(markdown(&document), wanted);
    }

    #[test]
    fn every_kind_of_block_has_its_form() {
        let rows = vec![vec!["a|b".to_owned(), "c".to_owned()], vec!["d".to_owned()]];
        let blocks = vec![
            Block::heading(2, "Title"),
            Block::new(BlockKind::ListItem { depth: 0 }, "one"),
            Block::new(BlockKind::ListItem { depth: 1 }, "two"),
            Block::paragraph("# no heading\n1. no list\n1.5 litres"),
            Block::table(Table { rows, header_rows: 1 }),
            Block::new(BlockKind::Caption, "a picture"),
            Block::new(BlockKind::Code, "let a = \"```\";"),
            Block::new(BlockKind::Note, "by\nthe way"),
            Block::new(BlockKind::Furniture, "page 1 of 9"),
        ];
        let wanted = "## Title\n\n- one\n  - two\n\n\\# no heading\n1\\. no list\n1.5 litres\n\n| a\\|b | c |\n| --- | --- |\n| d |  |\n\n\
            *a picture*\n\n````\nlet a = \"```\";\n````\n\n> by\n> the way\n";
        check(vec![blocks], wanted);
    }

    #[test]
    fn one_long_row_does_not_make_all_rows_long() {
        let mut rows = vec![vec!["a".to_owned()]; 2000];
        rows[1000] = vec!["b".to_owned(); 2000];
        let mut out = String::new();
        write_table(&mut out, &Table { rows, header_rows: 1 });
        assert!(out.len() < 100_000 && out.contains("\n| a |\n| b | b |"), "{}", out.len());
    }

    #[test]
    fn words_that_look_like_marks_stay_words() {
        let paragraph = |text: &str, wanted: &str| check(vec![vec![Block::paragraph(text)]], wanted);
        paragraph("a\n=\n-\n___\n[1]: http://b", "a\n\\=\n\\-\n\\___\n\\[1]: http://b\n");
        paragraph("- - -\n_a_ [b] -c", "\\- - -\n_a_ [b] -c\n");
        check(vec![vec![Block::heading(1, "In C #"), Block::heading(2, "In C#")]], "# In C \\#\n\n## In C#\n");
    }

    #[test]
    fn an_item_is_at_most_one_deeper_than_the_last() {
        let items = [3, 5, 3, 0, 2].map(|depth| Block::new(BlockKind::ListItem { depth }, "a"));
        check(vec![items.to_vec()], "- a\n  - a\n- a\n- a\n  - a\n");
    }

    #[test]
    fn the_name_of_a_page_cannot_end_its_comment() {
        let mut out = String::new();
        start_page(&mut out, &Page { number: 1, name: Some("a --->".to_owned()), ..Page::default() });
        assert_eq!(out, "<!-- page 1: a - - -> -->");
    }

    #[test]
    fn pages_are_parted_where_there_are_several() {
        let page = |text: &str| vec![Block::paragraph(text)];
        check(vec![page("one")], "one\n");
        check(vec![page("one"), page("two")], "<!-- page 1 -->\n\none\n\n<!-- page 2 -->\n\ntwo\n");
        check(Vec::new(), "");
    }
}

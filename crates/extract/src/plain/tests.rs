use crate::{BlockKind, Document, Error, Format, Limits, Options, document};

fn read(bytes: &[u8], format: Format) -> Document {
    document(bytes, format, &Options::default()).unwrap()
}

fn kinds(text: &str) -> Vec<(BlockKind, String)> {
    let blocks = read(text.as_bytes(), Format::Markdown).pages.remove(0).blocks;
    blocks.into_iter().map(|block| (block.kind, block.text)).collect()
}

fn rows(text: &str) -> (Vec<Vec<String>>, usize) {
    match read(text.as_bytes(), Format::Csv).pages.remove(0).blocks.remove(0).kind {
        BlockKind::Table(table) => (table.rows, table.header_rows),
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_has_paragraphs_and_pages() {
    let read = read(b"one\r\ntwo\r\n \r\nthree\r\n\x0cfour\n\x0c\n", Format::Text);
    let pages: Vec<Vec<_>> =
        read.pages.iter().map(|page| page.blocks.iter().map(|block| block.text.as_str()).collect()).collect();
    assert_eq!(pages, [vec!["one\ntwo", "three"], vec!["four"]]);
    assert_eq!(read.pages[1].number, 2);
}

#[test]
fn text_may_have_any_encoding_but_must_be_text() {
    assert_eq!(read(b"\xff\xfec\0a\0f\0\xe9\0", Format::Text).text(), "café");
    let error = document(b"\x7fELF\x02\x01\x01\0\0\0\0", Format::Text, &Options::default()).unwrap_err();
    assert_eq!(error.kind(), "corrupted_file");
}

#[test]
fn more_pages_than_allowed_are_refused() {
    let limits = Limits { pages: 2, ..Limits::default() };
    let refused = Error::TooMuch { what: "pages", most: 2 };
    assert_eq!(document(b"a\x0cb\x0cc", Format::Text, &Options { limits, ..Options::default() }), Err(refused));
}

#[test]
fn markdown_is_read_by_blocks() {
    let found = kinds(
        "Title\n=====\n\nSome *marked* [text](to) with\na break.\n\n- one\n  - two\n\n    more\n- three\n\n```rust\nlet a;\n  b\n```\n\n\
         | a | b |\n|---|---|\n| 1 | `2` |\n\n> quoted\n\n<p>html</p>\n\nWord[^1].\n\n[^1]: a note\n",
    );
    let item = |depth| BlockKind::ListItem { depth };
    assert_eq!(found[0], (BlockKind::Heading { level: 1 }, "Title".into()));
    assert_eq!(found[1], (BlockKind::Paragraph, "Some marked text with a break.".into()));
    assert_eq!(found[2..5], [(item(0), "one".into()), (item(1), "two".into()), (BlockKind::Paragraph, "more".into())]);
    assert_eq!(found[5], (item(0), "three".into()));
    assert_eq!(found[6], (BlockKind::Code, "let a;\n  b".into()));
    assert!(
        matches!(&found[7].0, BlockKind::Table(table) if table.rows == [["a", "b"], ["1", "2"]] && table.header_rows == 1)
    );
    assert_eq!(found[8..10], [(BlockKind::Paragraph, "quoted".into()), (BlockKind::Paragraph, "html".into())]);
    assert_eq!(found[10..], [(BlockKind::Paragraph, "Word.".into()), (BlockKind::Note, "a note".into())]);
}

#[test]
fn what_stands_before_markdown_describes_it() {
    let read = read(b"---\ntitle: \"A title\"\ntags: [a]\n---\n\ntext", Format::Markdown);
    assert_eq!((read.metadata.title.as_deref(), read.text().as_str()), (Some("A title"), "text"));
}

#[test]
fn csv_is_a_table_whatever_separates_its_values() {
    let wanted = [["name", "size"], ["a, b", "1"]];
    for text in ["name,size\n\"a, b\",1\n", "name;size\n\"a, b\";1\n", "name\tsize\na, b\t1", "name|size\r\na, b|1\r\n"]
    {
        let (rows, header_rows) = rows(text);
        assert_eq!((rows, header_rows), (wanted.map(|row| row.map(str::to_owned).to_vec()).to_vec(), 1), "{text}");
    }
    assert_eq!(rows("sep=;\na;1,5\nb;2,5").0, [["a", "1,5"], ["b", "2,5"]]);
    assert_eq!(rows("1,5;2,5\n3,5;4,5").0, [["1,5", "2,5"], ["3,5", "4,5"]]);
    assert_eq!(rows("1,2\n3,4").1, 0);
}

#[test]
fn headings_are_the_path_of_what_comes_under_them() {
    let read = read(b"# a\n\n## b\n\ntext", Format::Markdown);
    assert_eq!(read.pages[0].blocks[2].path, ["a", "b"]);
}

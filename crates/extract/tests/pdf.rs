//! What is read out of PDF pages, shown on the smallest files that have it.

mod pdf_builder;

use corbie_extract::{Document, Error, Format, Kind, Limits, Options, Page, document, pdf_page_raster};
use pdf_builder::{Builder, lines, text};

fn read(builder: Builder) -> Document {
    document(&builder.build(), Format::Pdf, &Options::default()).expect("the file can be read")
}

fn page(content: &str) -> Page {
    let mut builder = Builder::new();
    builder.page(content);
    read(builder).pages.remove(0)
}

#[track_caller]
fn check(content: &str, expected: &[&str]) {
    let page = page(content);
    let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(texts, expected);
}

#[test]
fn words_are_parted_by_gaps_where_no_space_is_drawn() {
    check("BT /F1 10 Tf 72 700 Td [(Two) -300 (wor) 20 (ds)] TJ ET", &["Two words"]);
}

#[test]
fn columns_are_read_one_after_the_other() {
    let left = [
        "The left column holds the first",
        "half of the words that stand on",
        "this page and every line of it",
        "is",
        "nearly as long as the column.",
    ];
    let right = [
        "And the right column goes on",
        "where the left one has come to",
        "its end so that a reader never",
        "has to jump between the lines",
        "of both of them",
    ];
    let title = text("F1", 10, 180, 760, "A title that stands over both of the columns");
    check(
        &format!("{title}{}{}", lines(60, 700, &left), lines(320, 702, &right)),
        &["A title that stands over both of the columns", &left.join(" "), &right.join(" ")],
    );
}

#[test]
fn a_word_broken_at_the_end_of_a_column_is_put_together() {
    let left = [
        "A column of text that ends with a",
        "word which does not fit into its",
        "last line so that it is broken",
        "and goes on in the other col-",
    ];
    let right = [
        "umn where it ends, and then there",
        "is more text to read that has as",
        "many lines as the first column",
        "and is as long as it is",
    ];
    let page = page(&(lines(60, 700, &left) + &lines(320, 702, &right)));
    assert_eq!(page.blocks.len(), 1);
    assert!(page.blocks[0].text.contains("the other column where it ends"));
}

#[test]
fn a_sentence_goes_on_in_the_next_column() {
    let left = [
        "A column of text that does not end",
        "with the end of a sentence, so the",
        "words in its last line belong with",
        "those that are found at the head of",
    ];
    let right = [
        "the next column, and no part of it",
        "is of much use without the other.",
        "Here is more text that has as many",
        "lines as the first column has.",
    ];
    let content = lines(60, 700, &left) + &lines(320, 702, &right);
    check(&content, &[&format!("{} {}", left.join(" "), right.join(" "))]);
}

#[test]
fn rows_of_short_cells_are_read_across() {
    let mut content = String::new();
    for (row, (name, price)) in
        [("Apples", "1.20"), ("Pears", "2.30"), ("Plums", "3.40"), ("Figs", "4.50")].iter().enumerate()
    {
        let y = 700 - 12 * row as i32;
        content += &(text("F1", 10, 60, y, name) + &text("F1", 10, 300, y, price));
    }
    check(&content, &["Apples 1.20 Pears 2.30 Plums 3.40 Figs 4.50"]);
}

#[test]
fn remarks_in_a_margin_are_read_apart_from_the_rows_beside_them() {
    let remarks = ["Attach", "the forms", "you have", "got"];
    let remarks: String = (0..).zip(remarks).map(|(line, words)| text("F1", 10, 40, 697 - 11 * line, words)).collect();
    let rows = ["Wages", "Interest", "Dividends", "Refunds"];
    let rows: String = (0..)
        .zip(rows)
        .map(|(row, words)| text("F1", 10, 140, 700 - 16 * row, words) + &text("F1", 10, 400, 700 - 16 * row, "12"))
        .collect();
    let expected = ["Attach the forms you have got", "Wages 12 Interest 12 Dividends 12 Refunds 12"];
    check(&(remarks + &rows), &expected);
}

#[test]
fn a_line_drawn_across_ends_columns() {
    let column = |x: i32, y: i32, word: &str| {
        let line = format!("{word} column with lines long enough");
        lines(x, y, &[line.as_str(); 4])
    };
    let content = column(60, 700, "Left") + &column(320, 702, "Right") + "50 650 m 550 650 l S\n";
    let below = column(60, 630, "Lower left") + &column(320, 632, "Lower right");
    let page = page(&(content + &below));
    let first = |block: &str| block.split(" column").next().map(str::to_owned);
    let order: Vec<String> = page.blocks.iter().filter_map(|block| first(&block.text)).collect();
    assert_eq!(order, ["Left", "Right", "Lower left", "Lower right"]);
}

#[test]
fn dots_that_lead_to_a_number_part_nothing() {
    let row = |row: i32| {
        let dots: String = (0..12).map(|dot| text("F1", 10, 260 + 20 * dot, 700 - 12 * row, ".")).collect();
        text("F1", 10, 60, 700 - 12 * row, "A chapter with a rather long name")
            + &dots
            + &text("F1", 10, 520, 700 - 12 * row, "7")
    };
    let dots = ". . . . . . . . . . . .";
    let expected = vec![format!("A chapter with a rather long name {dots} 7"); 4].join(" ");
    check(&(0..4).map(row).collect::<String>(), &[&expected]);
}

#[test]
fn the_raised_number_of_a_note_is_no_part_of_the_word_or_number_before_it() {
    let raised = |words: &str| format!("BT /F1 10 Tf 60 700 Td ({words}) Tj /F1 6 Tf 4 Ts (1) Tj ET");
    check(&raised("Editor"), &["Editor 1"]);
    check(&raised("273.750"), &["273.750 1"]);
    check(&raised("200 km"), &["200 km1"]);
    check("BT /F1 6 Tf 60 700 Td 4 Ts (1) Tj /F1 10 Tf 0 Ts (Here) Tj ET", &["1 Here"]);
}

#[test]
fn lines_that_hang_under_the_first_go_on_with_it() {
    let content = text("F1", 10, 60, 700, "Ada Byron, A sketch of the engine and of its operations and")
        + &lines(75, 688, &["what it may do with numbers", "and other things"]);
    check(
        &content,
        &["Ada Byron, A sketch of the engine and of its operations and what it may do with numbers and other things"],
    );
}

#[test]
fn a_word_broken_at_the_end_of_a_line_is_put_together() {
    check(
        &lines(60, 700, &["It is a matter of infor-", "mation and of self-", "Reliance"]),
        &["It is a matter of information and of self- Reliance"],
    );
}

#[test]
fn paragraphs_are_parted_by_space_and_list_items_by_bullets() {
    let content = lines(60, 700, &["One paragraph", "goes on here."])
        + &lines(60, 660, &["Another one."])
        + &lines(60, 630, &["- first", "- second"])
        + &lines(80, 606, &["- inner"]);
    let page = page(&content);
    let kinds: Vec<(&str, &Kind)> = page.blocks.iter().map(|block| (block.text.as_str(), &block.kind)).collect();
    let expected = [
        ("One paragraph goes on here.", &Kind::Paragraph),
        ("Another one.", &Kind::Paragraph),
        ("- first", &Kind::ListItem { depth: 0 }),
        ("- second", &Kind::ListItem { depth: 0 }),
        ("- inner", &Kind::ListItem { depth: 1 }),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_line_that_ends_though_there_is_room_ends_a_paragraph() {
    let letter = [
        "May 5, 2023",
        "To whom it may concern:",
        "There were twenty thousand ships in the harbour of the town when the storm began, and all of",
        "them were counted before the evening came. Nobody knows who did it.",
        "Best regards,",
        "Mallori",
    ];
    let expected = [letter[0], letter[1], &format!("{} {}", letter[2], letter[3]), "Best regards, Mallori"];
    check(&lines(60, 700, &letter), &expected);
}

#[test]
fn text_drawn_twice_to_look_bold_is_said_once() {
    let content = text("F1", 10, 60, 700, "Shadow") + "BT /F1 10 Tf 60.4 700.2 Td (Shadow) Tj ET\n";
    check(&content, &["Shadow"]);
    check("BT /F1 10 Tf 60 700 Td (ill) Tj ET", &["ill"]);
}

#[test]
fn an_accent_drawn_over_a_letter_becomes_a_part_of_it() {
    // Back by the width of the accent, and a little to the left of where it began.
    check("BT /F1 10 Tf 60 700 Td [(M\\250) 450 (uller)] TJ ET", &["M\u{fc}ller"]);
}

#[test]
fn right_to_left_text_is_read_in_its_order() {
    // The page shows the letters from left to right as they stand there: the last one first.
    check(&text("F3", 12, 300, 700, "abc de 12"), &["12 הד גבא"]);
}

#[test]
fn rotated_text_is_read_in_its_own_direction() {
    let content =
        text("F1", 10, 60, 700, "Level words are read first") + "BT /F1 10 Tf 0 1 -1 0 30 100 Tm (Upright words) Tj ET";
    check(&content, &["Level words are read first", "Upright words"]);
}

#[test]
fn text_beside_the_page_is_left_out() {
    check(&(text("F1", 10, 60, 700, "inside") + &text("F1", 10, 700, 700, "outside")), &["inside"]);
}

#[test]
fn ligatures_are_written_out_and_private_characters_dropped() {
    let mut builder = Builder::new();
    let map = "begincmap 1 begincodespacerange <00> <FF> endcodespacerange \
               2 beginbfchar <61> <FB01> <62> <E001> endbfchar endcmap";
    let map = builder.stream("", map.as_bytes());
    let font = builder.object(&format!("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {map} 0 R >>"));
    let content = "BT /F9 10 Tf 72 700 Td (andb) Tj ET";
    let resources = format!("/Resources << /Font << /F9 {font} 0 R >> >>");
    builder.page_with(content.as_bytes(), &resources);
    assert_eq!(read(builder).text(), "find");
}

#[test]
fn a_ruled_table_keeps_its_cells() {
    let mut content = String::from("1 w\n");
    for y in [700, 680, 660] {
        content += &format!("100 {y} m 300 {y} l S\n");
    }
    for x in [100, 200, 300] {
        content += &format!("{x} 660 m {x} 700 l S\n");
    }
    content += &text("F2", 10, 105, 686, "Name");
    content += &text("F2", 10, 205, 686, "Price");
    content += &text("F1", 10, 105, 666, "Green apples");
    content += &text("F1", 10, 205, 666, "1.20");
    content += &text("F1", 10, 100, 740, "Above the table");
    content += &text("F1", 10, 100, 620, "Below the table");
    let page = page(&content);
    let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(texts, ["Above the table", "Name\tPrice\nGreen apples\t1.20", "Below the table"]);
    let Kind::Table(table) = &page.blocks[1].kind else { panic!("{:?} is a table", page.blocks[1]) };
    assert_eq!(table.header_rows, 1);
}

#[test]
fn lines_of_a_table_may_be_rectangles_that_are_filled_at_once() {
    let mut content = String::new();
    for y in [700, 680, 660] {
        content += &format!("100 {y} m 300 {y} l 300 {} l 100 {} l h\n", y + 1, y + 1);
    }
    for x in [100, 200, 300] {
        content += &format!("{x} 660 m {} 660 l {} 700 l {x} 700 l h\n", x + 1, x + 1);
    }
    content += "f\n";
    let cells = [(105, 686, "one"), (205, 686, "two"), (105, 666, "three"), (205, 666, "four")];
    content.extend(cells.map(|(x, y, words)| text("F1", 10, x, y, words)));
    check(&content, &["one\ttwo\nthree\tfour"]);
}

#[test]
fn headers_and_footers_are_furniture() {
    let mut builder = Builder::new();
    for number in 1..=4 {
        let body = format!(
            "This is what page {} of the report is about, and it is different",
            ["one", "two", "three", "four"][number - 1]
        );
        builder.page(
            &(text("F1", 9, 60, 780, "Annual report")
                + &text("F1", 10, 60, 500, &body)
                + &text("F1", 9, 290, 20, &number.to_string())),
        );
    }
    for page in read(builder).pages {
        let furniture: Vec<bool> = page.blocks.iter().map(|block| block.kind == Kind::Furniture).collect();
        assert_eq!(furniture, [true, false, true], "page {}", page.number);
    }
}

#[test]
fn headings_are_known_by_size_and_weight_and_are_the_path_of_what_follows() {
    let body =
        ["Words of the text that are many enough to be the", "size that everything else is measured against here."];
    let content = text("F1", 24, 60, 740, "The title")
        + &text("F1", 16, 60, 700, "A chapter")
        + &lines(60, 670, &body)
        + &text("F2", 10, 60, 630, "A section")
        + &lines(60, 610, &body);
    let page = page(&content);
    let kinds: Vec<Option<u8>> = page
        .blocks
        .iter()
        .map(|block| if let Kind::Heading { level } = block.kind { Some(level) } else { None })
        .collect();
    assert_eq!(kinds, [Some(1), Some(2), None, Some(3), None]);
    assert_eq!(page.blocks[4].path, ["The title", "A chapter", "A section"]);
}

#[test]
fn bookmarks_make_headings_of_what_looks_like_text() {
    let mut builder = Builder::new();
    let page = builder.page(&(lines(60, 700, &["1 Introduction"]) + &lines(60, 670, &["Some words.", "Some more."])));
    let next = builder.objects();
    builder.object(&format!("<< /Type /Outlines /First {} 0 R >>", next + 2));
    builder.object(&format!("<< /Title (Introduction) /Dest [{page} 0 R /Fit] >>"));
    builder.catalog(&format!("/Outlines {} 0 R", next + 1));
    let document = read(builder);
    assert_eq!(document.pages[0].blocks[0].kind, Kind::Heading { level: 1 });
    assert_eq!(document.pages[0].blocks[1].kind, Kind::Paragraph);
}

#[test]
fn fields_and_comments_are_read() {
    let mut builder = Builder::new();
    let field = builder.object("<< /Subtype /Widget /FT /Tx /TU (Your name) /V (Ada) /Rect [0 0 9 9] >>");
    let empty = builder.object("<< /Subtype /Widget /FT /Tx /T (other) /Rect [0 0 9 9] >>");
    let comment = builder.object("<< /Subtype /Text /Contents (\\376\\377\\000O\\000k) /Rect [0 0 9 9] >>");
    let annotations = format!("/Annots [{field} 0 R {empty} 0 R {comment} 0 R]");
    builder.page_with(text("F1", 10, 60, 700, "A form").as_bytes(), &annotations);
    let page = read(builder).pages.remove(0);
    let blocks: Vec<(&Kind, &str)> = page.blocks.iter().map(|block| (&block.kind, block.text.as_str())).collect();
    assert_eq!(blocks, [(&Kind::Paragraph, "A form"), (&Kind::Field, "Your name: Ada"), (&Kind::Comment, "Ok")]);
}

#[test]
fn metadata_are_read() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "Words"));
    let info =
        builder.object("<< /Title (\\376\\377\\000H\\000i) /Author (Ada) /CreationDate (D:20240131120000+01'00') >>");
    builder.trailer(&format!("/Info {info} 0 R"));
    builder.catalog("/Lang (en-GB)");
    let metadata = read(builder).metadata;
    assert_eq!(metadata.title.as_deref(), Some("Hi"));
    assert_eq!(metadata.author.as_deref(), Some("Ada"));
    assert_eq!(metadata.language.as_deref(), Some("en-GB"));
    assert_eq!(metadata.created.as_deref(), Some("2024-01-31T12:00:00+01:00"));
}

#[test]
fn a_page_of_pictures_asks_to_be_read_as_a_picture() {
    let mut builder = Builder::new();
    let image = "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8";
    let image = builder.stream(image, b"\x7f");
    builder.page_with(b"q 600 0 0 800 0 0 cm /I Do Q", &format!("/Resources << /XObject << /I {image} 0 R >> >>"));
    builder.page(&text("F1", 10, 60, 700, "Words"));
    let pages = read(builder).pages;
    assert_eq!([pages[0].scanned, pages[1].scanned], [true, false]);
}

#[test]
fn letters_that_do_not_tell_what_they_say_ask_to_be_read_as_a_picture() {
    let mut builder = Builder::new();
    let map = "begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <61> <E001> endbfchar endcmap";
    let map = builder.stream("", map.as_bytes());
    let font = builder.object(&format!("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {map} 0 R >>"));
    builder.page_with(b"BT /F9 10 Tf 72 700 Td (a) Tj ET", &format!("/Resources << /Font << /F9 {font} 0 R >> >>"));
    assert!(read(builder).pages[0].scanned);
}

#[test]
fn a_file_that_says_and_shows_nothing_is_an_error() {
    let mut builder = Builder::new();
    builder.page("100 100 200 200 re f");
    assert_eq!(document(&builder.build(), Format::Pdf, &Options::default()), Err(Error::NoText));
    let none = document(&Builder::new().build(), Format::Pdf, &Options::default());
    assert!(matches!(none, Err(Error::Corrupted(_))));
    assert_eq!(document(b" \n", Format::Text, &Options::default()), Err(Error::NoText));
}

#[test]
fn a_page_can_be_drawn() {
    let mut builder = Builder::new();
    builder.page("0 0 0 rg 0 400 600 400 re f");
    let file = builder.build();
    let raster = pdf_page_raster(&file, 1, 36.0, &Limits::default()).expect("a picture");
    assert_eq!((raster.width, raster.height, raster.rgb.len()), (300, 400, 300 * 400 * 3));
    assert_eq!((raster.rgb[0], raster.rgb[raster.rgb.len() - 1]), (0, 255));
    let small = pdf_page_raster(&file, 1, 300.0, &Limits { pixels: 10_000, ..Limits::default() }).expect("a picture");
    assert!(small.width * small.height <= 10_000);
    assert!(matches!(pdf_page_raster(&file, 2, 36.0, &Limits::default()), Err(Error::Corrupted(_))));
}

#[test]
fn a_page_too_thin_for_the_renderer_says_so() {
    let mut builder = Builder::new();
    builder.page_with(b"", "/MediaBox [0 0 1 100000]");
    let drawn = pdf_page_raster(&builder.build(), 1, 36.0, &Limits::default());
    assert_eq!(drawn, Err(Error::Corrupted("page 1 is too thin to be drawn".to_owned())));
}

#[test]
fn limits_are_kept() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "Seven words are too many for this"));
    builder.page("");
    let file = builder.build();
    let read = |limits: Limits| document(&file, Format::Pdf, &Options { limits, ..Options::default() });
    assert_eq!(read(Limits { pages: 1, ..Limits::default() }), Err(Error::TooMuch { what: "pages", most: 1 }));
    let few = Limits { characters: 10, ..Limits::default() };
    assert_eq!(read(few), Err(Error::TooMuch { what: "characters", most: 10 }));
}

#[test]
fn a_comment_counts_as_often_as_it_is_laid_over_a_page() {
    let mut builder = Builder::new();
    let comment = builder.object("<< /Subtype /Text /Contents (Four words said again) /Rect [0 0 9 9] >>");
    let choices = builder.object(&format!("<< /Subtype /Widget /V [{}] /Rect [0 0 9 9] >>", "(some words) ".repeat(9)));
    builder.page_with(b"", &format!("/Annots [{}]", format!("{comment} 0 R ").repeat(9)));
    builder.page_with(b"", &format!("/Annots [{choices} 0 R]"));
    let file = builder.build();
    for characters in [100, 250] {
        let limits = Limits { characters, ..Limits::default() };
        let refused = document(&file, Format::Pdf, &Options { limits, ..Options::default() });
        assert_eq!(refused, Err(Error::TooMuch { what: "characters", most: characters }));
    }
    assert!(document(&file, Format::Pdf, &Options::default()).is_ok());
}

/// A file encrypted with RC4 and a key of 40 bits: the owner's and the user's hash, and the content of its page.
fn encrypted(owner: &str, user: &str, content: &str) -> Vec<u8> {
    let bytes = |hex: &str| -> Vec<u8> {
        hex.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("two digits"))
            .collect()
    };
    let mut builder = Builder::bare();
    builder.object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    builder.page_with(&bytes(content), "/Resources << /Font << /F1 3 0 R >> >>");
    builder.trailer(&format!(
        "/Encrypt << /Filter /Standard /V 1 /R 2 /O <{owner}> /U <{user}> /P -4 >> \
         /ID [<000102030405060708090a0b0c0d0e0f> <000102030405060708090a0b0c0d0e0f>]"
    ));
    builder.build()
}

#[test]
fn a_file_with_an_empty_password_opens() {
    let file = encrypted(
        "c92422687facee686e373f10b5c7d04738053152f7e2ee30e11c69ec442576ab",
        "19794f9d50ebc9182f8a72bb20274501272fe2bee8bbe219d98cb9360ba26be1",
        "e731039863845f158d83d605197a78d4933bb3e6d680f2b5d33f15e00129eb78e0fc952fa3487e935151175844f37a984d",
    );
    let document = document(&file, Format::Pdf, &Options::default()).expect("it opens");
    assert_eq!(document.text(), "Only for your eyes");
}

#[test]
fn a_file_with_a_password_says_so() {
    let file = encrypted(
        "92fe0f4454ad4c9644693f33c07cb54f587dce1e2682fe9ecea6107a1ef630dd",
        "a2d98dd93474875ec95c60445c51fe1df35ffaac7da1baca629058b1c08a8e39",
        "ab6d3448216ebafa9de331ddcdd5b98bf95ecaddf9075ea2bc313b28ca0a9c1cb31d5669ee46bb20d1454f53154c51086a",
    );
    assert_eq!(document(&file, Format::Pdf, &Options::default()), Err(Error::PasswordProtected));
}

#[test]
fn a_broken_table_of_objects_is_mended() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "Still here"));
    let file = String::from_utf8(builder.build()).unwrap();
    let place = file.rfind("startxref").unwrap();
    let broken = format!("{}startxref\n99999\n%%EOF", &file[..place]);
    assert_eq!(document(broken.as_bytes(), Format::Pdf, &Options::default()).unwrap().text(), "Still here");
}

#[test]
fn a_truncated_file_gives_what_is_left_or_says_that_it_is_broken() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "First page"));
    builder.page(&text("F1", 10, 60, 700, "Second page"));
    let file = builder.build();
    for length in (1..file.len() - 7).step_by(37) {
        match document(&file[..length], Format::Pdf, &Options::default()) {
            Ok(read) => assert!(read.warnings[0].message.contains("the end of the file is missing"), "{length} bytes"),
            Err(Error::Corrupted(_) | Error::NoText) => {}
            Err(other) => panic!("{length} bytes: {other}"),
        }
    }
    assert!(matches!(document(b"not a file", Format::Pdf, &Options::default()), Err(Error::Corrupted(_))));
}

#[test]
fn pages_come_in_order_however_many_there_are() {
    let mut builder = Builder::new();
    for number in 1..=900 {
        builder.page(&text("F1", 10, 60, 400, &format!("Here is number {number}")));
    }
    let document = read(builder);
    assert_eq!(document.pages.len(), 900);
    for (page, number) in document.pages.iter().zip(1..) {
        assert_eq!((page.number, page.text()), (number, format!("Here is number {number}")));
    }
}

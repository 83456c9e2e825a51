//! Words, lines, columns and paragraphs, by glyph positions.

use corbie_extract::BlockKind;

use crate::pdf_builder::{Builder, lines, text};
use crate::{check, page, read};

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
    let kinds: Vec<(&str, &BlockKind)> = page.blocks.iter().map(|block| (block.text.as_str(), &block.kind)).collect();
    let expected = [
        ("One paragraph goes on here.", &BlockKind::Paragraph),
        ("Another one.", &BlockKind::Paragraph),
        ("- first", &BlockKind::ListItem { depth: 0 }),
        ("- second", &BlockKind::ListItem { depth: 0 }),
        ("- inner", &BlockKind::ListItem { depth: 1 }),
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
    // Moves back by the width of the accent, and a little further left.
    check("BT /F1 10 Tf 60 700 Td [(M\\250) 450 (uller)] TJ ET", &["M\u{fc}ller"]);
}

#[test]
fn right_to_left_text_is_read_in_its_order() {
    // The page shows the letters in visual order: the last one first.
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

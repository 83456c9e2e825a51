//! Every format, as text, Markdown and JSON.

use crate::command::{ExtractFolder, extract_json, page_texts};
use crate::sample_files::{self, SAMPLE_TEXT};

#[test]
fn k24_k42_v14_every_format_is_read() {
    let words = SAMPLE_TEXT.as_bytes();
    let table = format!("bird,where\ncrow,{SAMPLE_TEXT}\n");
    let files: [(&str, Vec<u8>); 11] = [
        ("a.pdf", sample_files::pdf()),
        ("a.docx", sample_files::docx()),
        ("a.pptx", sample_files::pptx()),
        ("a.xlsx", sample_files::xlsx()),
        ("a.html", sample_files::html()),
        ("a.htm", sample_files::html()),
        ("a.SVG", sample_files::svg()),
        ("a.md", words.to_vec()),
        ("a.txt", words.to_vec()),
        ("a.csv", table.into_bytes()),
        ("A.PDF", sample_files::pdf()),
    ];
    for (name, bytes) in files {
        let read = extract_json(name, &bytes);
        assert!(page_texts(&read)[0].contains(SAMPLE_TEXT), "{name}: {read}");
        assert_eq!(read["pages"][0]["number"], 1, "{name}");
        assert_eq!(read["error"], serde_json::Value::Null, "{name}");
    }
}

#[test]
fn k32_a_picture_tells_its_size() {
    for (name, bytes) in
        [("a.jpg", sample_files::jpg()), ("a.jpeg", sample_files::jpg()), ("a.png", sample_files::png())]
    {
        let read = extract_json(name, &bytes);
        assert_eq!(read["processing_method"], "image_analysis", "{name}");
        assert_eq!((&read["metadata"]["width"], &read["metadata"]["height"]), (&8.into(), &6.into()), "{name}");
        assert_eq!(read["error"], serde_json::Value::Null, "{name}");
    }
    assert_eq!(extract_json("a.svg", &sample_files::svg())["processing_method"], "image_analysis");
    assert_eq!(extract_json("a.pdf", &sample_files::pdf())["processing_method"], "text_extraction");
}

#[test]
fn k34_pages_keep_their_numbers_and_sheets_their_names() {
    let read = extract_json("a.pdf", &sample_files::pdf_with_pages(&["first", "second"]));
    assert_eq!(page_texts(&read), ["first", "second"]);
    assert_eq!(read["pages"][1]["number"], 2);
    assert_eq!(extract_json("a.xlsx", &sample_files::xlsx())["pages"][0]["name"], "Birds");
}

#[test]
fn k35_html_keeps_headings_and_drops_scripts() {
    let read = extract_json("a.html", &sample_files::html());
    assert_eq!(read["metadata"]["title"], "Birds");
    let blocks = read["pages"][0]["blocks"].as_array().unwrap();
    let heading = blocks.iter().find(|block| block["text"] == "Winter").unwrap();
    assert_eq!((&heading["kind"], &heading["level"]), (&"heading".into(), &1.into()));
    let crow = blocks.iter().find(|block| block["text"] == SAMPLE_TEXT).unwrap();
    assert_eq!(crow["path"], serde_json::json!(["Winter"]));
    assert!(!read.to_string().contains("hidden"));
}

#[test]
fn text_of_one_file_stands_alone_and_of_several_below_their_names() {
    let files = ExtractFolder::with_files([
        ("a.md", b"# One\n\nfirst" as &[u8]),
        ("b.pdf", &sample_files::pdf_with_pages(&["second", "third"])),
    ]);
    let one = files.run("b.pdf");
    assert_eq!((one.code, one.stdout.as_str(), one.stderr.as_str()), (Some(0), "second\n\u{c}\nthird\n", ""));
    let both = files.run("a.md b.pdf");
    assert_eq!(both.stdout, "==> a.md <==\nOne\n\nfirst\n\n==> b.pdf <==\nsecond\n\u{c}\nthird\n\n");
    assert_eq!(files.run("--markdown a.md").stdout, "# One\n\nfirst\n");
}

#[test]
fn stdin_and_names_without_an_ending_are_known_by_what_is_in_them() {
    let files = ExtractFolder::with_files([("README", &sample_files::docx() as &[u8])]);
    assert_eq!(files.run("README").stdout, format!("{SAMPLE_TEXT}\n"));
    assert_eq!(files.run_with_stdin("-", &sample_files::pdf()).stdout, format!("{SAMPLE_TEXT}\n"));
}

#[test]
fn a_file_that_fails_does_not_keep_the_others_from_being_read() {
    let files =
        ExtractFolder::with_files([("a.txt", b"first" as &[u8]), ("b.pdf", b"%PDF-1.7 nothing"), ("c.txt", b"third")]);
    let ended = files.run("a.txt b.pdf missing.txt c.txt");
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stdout, "==> a.txt <==\nfirst\n\n==> c.txt <==\nthird\n\n");
    assert!(ended.stderr.contains("corbie: b.pdf: the file is corrupt"), "{}", ended.stderr);
    assert!(ended.stderr.contains("corbie: missing.txt: file not found"), "{}", ended.stderr);
}

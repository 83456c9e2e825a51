//! Every format, as text, Markdown and JSON.

use crate::command::{Files, json, texts};
use crate::made::{self, WORDS};

#[test]
fn k24_k42_v14_every_format_is_read() {
    let words = WORDS.as_bytes();
    let table = format!("bird,where\ncrow,{WORDS}\n");
    let files: [(&str, Vec<u8>); 11] = [
        ("a.pdf", made::pdf()),
        ("a.docx", made::docx()),
        ("a.pptx", made::pptx()),
        ("a.xlsx", made::xlsx()),
        ("a.html", made::html()),
        ("a.htm", made::html()),
        ("a.SVG", made::svg()),
        ("a.md", words.to_vec()),
        ("a.txt", words.to_vec()),
        ("a.csv", table.into_bytes()),
        ("A.PDF", made::pdf()),
    ];
    for (name, bytes) in files {
        let read = json(name, &bytes);
        assert!(texts(&read)[0].contains(WORDS), "{name}: {read}");
        assert_eq!(read["pages"][0]["number"], 1, "{name}");
        assert_eq!(read["error"], serde_json::Value::Null, "{name}");
    }
}

#[test]
fn k32_a_picture_tells_its_size() {
    for (name, bytes) in [("a.jpg", made::jpg()), ("a.jpeg", made::jpg()), ("a.png", made::png())] {
        let read = json(name, &bytes);
        assert_eq!(read["processing_method"], "image_analysis", "{name}");
        assert_eq!((&read["metadata"]["width"], &read["metadata"]["height"]), (&8.into(), &6.into()), "{name}");
        assert_eq!(read["error"], serde_json::Value::Null, "{name}");
    }
    assert_eq!(json("a.svg", &made::svg())["processing_method"], "image_analysis");
    assert_eq!(json("a.pdf", &made::pdf())["processing_method"], "text_extraction");
}

#[test]
fn k34_pages_keep_their_numbers_and_sheets_their_names() {
    let read = json("a.pdf", &made::pages(&["first", "second"]));
    assert_eq!(texts(&read), ["first", "second"]);
    assert_eq!(read["pages"][1]["number"], 2);
    assert_eq!(json("a.xlsx", &made::xlsx())["pages"][0]["name"], "Birds");
}

#[test]
fn k35_html_keeps_headings_and_drops_scripts() {
    let read = json("a.html", &made::html());
    assert_eq!(read["metadata"]["title"], "Birds");
    let blocks = read["pages"][0]["blocks"].as_array().unwrap();
    let heading = blocks.iter().find(|block| block["text"] == "Winter").unwrap();
    assert_eq!((&heading["kind"], &heading["level"]), (&"heading".into(), &1.into()));
    let crow = blocks.iter().find(|block| block["text"] == WORDS).unwrap();
    assert_eq!(crow["path"], serde_json::json!(["Winter"]));
    assert!(!read.to_string().contains("hidden"));
}

#[test]
fn text_of_one_file_stands_alone_and_of_several_below_their_names() {
    let files = Files::of([("a.md", b"# One\n\nfirst" as &[u8]), ("b.pdf", &made::pages(&["second", "third"]))]);
    let one = files.run("b.pdf");
    assert_eq!((one.code, one.out.as_str(), one.err.as_str()), (Some(0), "second\n\u{c}\nthird\n", ""));
    let both = files.run("a.md b.pdf");
    assert_eq!(both.out, "==> a.md <==\nOne\n\nfirst\n\n==> b.pdf <==\nsecond\n\u{c}\nthird\n\n");
    assert_eq!(files.run("--markdown a.md").out, "# One\n\nfirst\n");
}

#[test]
fn stdin_and_names_without_an_ending_are_known_by_what_is_in_them() {
    let files = Files::of([("README", &made::docx() as &[u8])]);
    assert_eq!(files.run("README").out, format!("{WORDS}\n"));
    assert_eq!(files.run_with("-", &made::pdf()).out, format!("{WORDS}\n"));
}

#[test]
fn a_file_that_fails_does_not_keep_the_others_from_being_read() {
    let files = Files::of([("a.txt", b"first" as &[u8]), ("b.pdf", b"%PDF-1.7 nothing"), ("c.txt", b"third")]);
    let ended = files.run("a.txt b.pdf missing.txt c.txt");
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.out, "==> a.txt <==\nfirst\n\n==> c.txt <==\nthird\n\n");
    assert!(ended.err.contains("corbie: b.pdf: the file is broken"), "{}", ended.err);
    assert!(ended.err.contains("corbie: missing.txt: there is no such file"), "{}", ended.err);
}

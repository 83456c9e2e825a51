//! Tesseract instead of the built-in OCR.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::sample_images::{IMAGE_TEXT, PageContent, TEXT_LAYER, pdf};
use crate::command::{ExtractFolder, page_texts};

fn scan_with_tesseract(pages: &[PageContent<'_>]) -> ExtractFolder {
    ExtractFolder::with_files([("scan.pdf", &pdf(pages) as &[u8])]).ocr_setting("engine", "tesseract")
}

/// A script with the command line of Tesseract.
fn fake_tesseract(folder: &Path, script: &str) -> String {
    let program = folder.join("tesseract");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program.to_str().unwrap().to_owned()
}

#[test]
fn k31_ocr_failed_says_that_tesseract_is_missing() {
    let read = scan_with_tesseract(&[PageContent::Scan(IMAGE_TEXT)]).variable("PATH", "/nowhere").json("scan.pdf");
    assert_eq!(
        (&read["error"], &read["message"]),
        (&json!("ocr_failed"), &json!("OCR processing failed: Tesseract not found"))
    );
    let ended = scan_with_tesseract(&[PageContent::Scan(IMAGE_TEXT)]).variable("PATH", "/nowhere").run("scan.pdf");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("OCR processing failed: Tesseract not found"), "{ended:?}");
    assert!(ended.stderr.contains("ocr.engine"), "no next step in {ended:?}");
}

#[test]
fn k31_pages_with_text_are_kept_where_others_cannot_be_read() {
    let read = scan_with_tesseract(&[PageContent::Text(&TEXT_LAYER), PageContent::Scan(IMAGE_TEXT)])
        .variable("PATH", "/nowhere")
        .json("scan.pdf");
    assert_eq!((&read["error"], &read["partial"]), (&json!("ocr_failed"), &json!(true)), "{read}");
    assert!(page_texts(&read)[0].starts_with(TEXT_LAYER[0]));
    assert_eq!(read["warnings"][0]["page"], 2);
}

#[test]
fn it_is_told_the_languages_and_its_words_become_the_text() {
    let files = scan_with_tesseract(&[PageContent::Scan(IMAGE_TEXT), PageContent::Text(&TEXT_LAYER)])
        .ocr_setting("language", "deu+eng");
    let folder = files.folder().to_owned();
    // Records its arguments, the header of the picture and its size.
    let script = r#"echo "$@" > "$(dirname "$0")/told"
head -c 18 > "$(dirname "$0")/head"; wc -c > "$(dirname "$0")/rest"
env | cut -d= -f1 > "$(dirname "$0")/environment"
printf '5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t80\tdivi-\n5\t1\t1\t1\t2\t1\t0\t0\t9\t9\t90\tded\n5\t1\t2\t1\t1\t1\t0\t0\t9\t9\t90\tAgain\n'"#;
    let program = fake_tesseract(&folder, script);
    let files = files.ocr_setting("tesseract", &program).variable("PATH", "/usr/bin:/bin").variable("SECRET", "1");
    let read = files.json("scan.pdf");
    assert_eq!(page_texts(&read)[0], "divided\n\nAgain", "{read}");
    assert_eq!(read["processing_method"], "hybrid");
    let text = |name: &str| String::from_utf8_lossy(&fs::read(folder.join(name)).unwrap()).into_owned();
    assert_eq!(text("told").trim(), "stdin stdout -l deu+eng --psm 1 --dpi 200 -c tessedit_create_tsv=1");
    let head = text("head");
    let size: Vec<usize> = head.split(' ').skip(1).take(2).map(|number| number.parse().unwrap()).collect();
    assert!(head.starts_with("P5 ") && head.lines().next().unwrap().ends_with(" 255"), "{head:?}");
    let rest: usize = text("rest").trim().parse().unwrap();
    assert_eq!(rest + 18 - head.lines().next().unwrap().len() - 1, size[0] * size[1]);
    assert!(!text("environment").contains("SECRET"));
}

#[test]
fn k31_ocr_failed_has_the_words_of_a_program_that_fails_or_takes_too_long() {
    for (script, words) in [
        ("echo \"Failed loading language 'xyz'\" >&2; exit 1", "Tesseract failed: Failed loading language 'xyz'"),
        ("kill -9 $$", "Tesseract failed: no error message"),
        ("sleep 60", "Tesseract timed out after 1s; increase `ocr.page_timeout`"),
    ] {
        let files = scan_with_tesseract(&[PageContent::Scan(IMAGE_TEXT)])
            .ocr_setting("page_timeout", "1s")
            .variable("PATH", "/usr/bin:/bin");
        let program = fake_tesseract(files.folder(), script);
        let read = files.ocr_setting("tesseract", &program).json("scan.pdf");
        assert_eq!(read["message"], format!("OCR processing failed: {words}"), "{read}");
        assert_eq!(read["error"], "ocr_failed");
    }
}

#[test]
fn a_language_cannot_be_a_flag() {
    for language in ["--help", "eng --psm", "", "eng+", "../x"] {
        let ended =
            scan_with_tesseract(&[PageContent::Scan(IMAGE_TEXT)]).ocr_setting("language", language).run("scan.pdf");
        assert_ne!(ended.code, Some(0), "{language}");
        assert!(ended.stderr.contains("ocr.language"), "{language}: {ended:?}");
    }
    assert_eq!(
        Value::Null,
        scan_with_tesseract(&[PageContent::Text(&TEXT_LAYER)])
            .ocr_setting("language", "script/Latin+eng")
            .json("scan.pdf")["error"]
    );
}

#[test]
fn looking_at_pages_gives_a_file_more_time_and_no_more_than_they_take() {
    // Each page takes a second, and all of them exceed the timeout of a file.
    let says = r"sleep 1; printf '5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t80\twords\n'";
    let pages: Vec<PageContent<'_>> = (0..6).map(|_| PageContent::Scan(IMAGE_TEXT)).collect();
    let files = scan_with_tesseract(&pages)
        .variable("PATH", "/usr/bin:/bin")
        .setting("timeout", "5s")
        .ocr_setting("page_timeout", "20s");
    let program = fake_tesseract(files.folder(), says);
    let read = files.ocr_setting("tesseract", &program).json("scan.pdf");
    assert_eq!((&read["error"], page_texts(&read)), (&Value::Null, vec!["words"; 6]), "{read}");
}

#[test]
fn what_it_starts_ends_with_it() {
    let files = scan_with_tesseract(&[PageContent::Scan(IMAGE_TEXT)])
        .ocr_setting("page_timeout", "1s")
        .variable("PATH", "/usr/bin:/bin");
    let folder = files.folder().to_owned();
    let program = fake_tesseract(&folder, "sleep 97 & echo $! > \"$(dirname \"$0\")/id\"; wait");
    let files = files.ocr_setting("tesseract", &program);
    assert_eq!(files.json("scan.pdf")["error"], "ocr_failed");
    let id = fs::read_to_string(folder.join("id")).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
fn a_relative_path_starts_from_the_folder_of_the_settings_and_not_from_the_working_folder() {
    let files = scan_with_tesseract(&[PageContent::Scan(IMAGE_TEXT)]).variable("PATH", "/usr/bin:/bin");
    let script = r"printf '5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t80\twords\n'";
    fake_tesseract(files.folder(), script);
    let settings = files.folder().join("settings");
    fs::create_dir(&settings).unwrap();
    fs::write(settings.join("corbie.yaml"), "ocr: {tesseract: ./tesseract}\n").unwrap();
    let named = settings.join("corbie.yaml");
    let files = files.variable("CORBIE_CONFIG", named.to_str().unwrap());
    assert_eq!(files.json("scan.pdf")["error"], "ocr_failed", "the one in the working folder is not run");
    fake_tesseract(&settings, script);
    let read = files.json("scan.pdf");
    assert_eq!(page_texts(&read), ["words"], "{read}");
}

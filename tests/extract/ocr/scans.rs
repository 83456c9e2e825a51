//! Which pages are read by OCR, and the treatment of the remaining ones.

use serde_json::{Value, json};

use super::sample_images::{IMAGE_TEXT, PageContent, TEXT_LAYER, jpeg, pdf, render_text};
use crate::command::{ExtractFolder, page_texts};
use crate::page::{SERIF, TestPage, word_f1};

fn extract_scan(pages: &[PageContent<'_>], flags: &str) -> Value {
    ExtractFolder::with_files([("scan.pdf", &pdf(pages) as &[u8])]).json(&format!("{flags} scan.pdf"))
}

#[track_caller]
fn assert_page_text(read: &Value, page: usize, words: &str) {
    let texts = page_texts(read);
    let close = word_f1(words, texts[page]);
    assert!(close > 0.9, "{close}: {words:?} and {:?} in {read}", texts[page]);
}

#[test]
fn k33_k32_a_scan_is_read_as_a_picture_by_itself() {
    let read = extract_scan(&[PageContent::Scan(IMAGE_TEXT)], "");
    assert_page_text(&read, 0, IMAGE_TEXT);
    assert_eq!((&read["processing_method"], &read["error"]), (&json!("ocr"), &Value::Null));
    let page = &read["pages"][0];
    assert_eq!((&page["number"], &page["scanned"]), (&json!(1), &json!(true)));
    assert!(page["confidence"].as_f64().is_some_and(|sure| sure > 0.8 && sure <= 1.0), "{page}");
    assert_eq!(page["blocks"][0]["kind"], "paragraph");
}

#[test]
fn k32_k33_pages_with_text_keep_it_beside_scans() {
    let typed = TEXT_LAYER.join(" ");
    let read = extract_scan(
        &[
            PageContent::Text(&TEXT_LAYER),
            PageContent::Scan(IMAGE_TEXT),
            PageContent::Blank,
            PageContent::Text(&TEXT_LAYER),
        ],
        "",
    );
    assert_eq!(read["processing_method"], "hybrid", "{read}");
    assert_eq!(page_texts(&read)[0].replace('\n', " "), typed);
    assert_page_text(&read, 1, IMAGE_TEXT);
    assert_eq!(page_texts(&read)[2], "");
    assert_eq!(page_texts(&read)[3].replace('\n', " "), typed);
    let numbers: Vec<&Value> = read["pages"].as_array().unwrap().iter().map(|page| &page["number"]).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(read["pages"][0]["confidence"], Value::Null);
}

#[test]
fn k33_a_stamp_on_a_scan_is_no_reason_not_to_look() {
    let read = extract_scan(&[PageContent::Both(&["Page 1 of 1"], IMAGE_TEXT)], "");
    assert_page_text(&read, 0, &format!("Page 1 of 1 {IMAGE_TEXT}"));
    assert!(page_texts(&read)[0].starts_with("Page 1 of 1"), "{read}");
    assert_eq!(read["processing_method"], "hybrid");
}

#[test]
fn k33_a_scan_with_a_layer_of_text_is_not_read_again() {
    let read = extract_scan(&[PageContent::Layer(&TEXT_LAYER, IMAGE_TEXT)], "");
    assert_eq!(read["processing_method"], "text_extraction", "{read}");
    assert_eq!(page_texts(&read)[0].replace('\n', " "), TEXT_LAYER.join(" "));
}

#[test]
fn k33_a_short_page_without_pictures_is_not_looked_at() {
    let read = extract_scan(&[PageContent::Text(&["The end"])], "");
    assert_eq!((&read["processing_method"], page_texts(&read)[0]), (&json!("text_extraction"), "The end"));
}

#[test]
fn k22_all_pages_are_looked_at_where_that_is_forced() {
    for flag in ["--ocr=force", "--ocr"] {
        let read = extract_scan(&[PageContent::Text(&TEXT_LAYER), PageContent::Layer(&TEXT_LAYER, IMAGE_TEXT)], flag);
        assert_eq!(read["processing_method"], "ocr", "{read}");
        assert_page_text(&read, 0, &TEXT_LAYER.join(" "));
        // Invisible text is ignored.
        assert_page_text(&read, 1, IMAGE_TEXT);
        assert!(read["pages"][0]["confidence"].is_number());
    }
}

#[test]
fn k31_nothing_is_looked_at_where_that_is_off() {
    let read = extract_scan(&[PageContent::Scan(IMAGE_TEXT)], "--ocr=off");
    assert_eq!(read["error"], "no_text_extracted", "{read}");
    assert_eq!(read["pages"][0]["scanned"], true);
    let files = ExtractFolder::with_files([(
        "scan.pdf",
        &pdf(&[PageContent::Text(&TEXT_LAYER), PageContent::Scan(IMAGE_TEXT)]) as &[u8],
    )])
    .ocr_setting("engine", "off");
    let ended = files.run("scan.pdf");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("pages with images that were not read: 2"), "{ended:?}");
    let read = files.json("--ocr=force scan.pdf");
    assert_eq!(read["error"], "ocr_failed", "{read}");
    assert_eq!(read["message"], "OCR processing failed: `ocr.engine` is `off`; set it to `builtin`");
}

#[test]
fn many_scans_come_in_order() {
    let says: Vec<String> = ["first", "second", "third", "fourth", "fifth", "sixth"]
        .iter()
        .map(|place| format!("This page is the {place} of the letters that were found in the drawer"))
        .collect();
    let pages: Vec<PageContent<'_>> =
        says.iter().flat_map(|says| [PageContent::Scan(says), PageContent::Blank]).collect();
    let read = extract_scan(&pages, "");
    for (index, words) in says.iter().enumerate() {
        self::assert_page_text(&read, index * 2, words);
    }
}

#[test]
fn n11_a_scanned_page_takes_ten_seconds_of_a_processor_at_most() {
    let mut page = TestPage::blank(1654, 2339);
    let text = TEXT_LAYER.join(" ").repeat(10);
    let end = page.text(SERIF, 33.0, 150.0, 1500.0, 150.0, &text);
    assert!(end < 2300.0, "{end}");
    let files = ExtractFolder::with_files([("page.jpg", &jpeg(&page) as &[u8])])
        .setting("max_cpu_time", "1s")
        .ocr_setting("page_timeout", "8s");
    let read = files.json("page.jpg");
    assert!(word_f1(&text, page_texts(&read)[0]) > 0.985, "{read}");
}

#[test]
fn words_on_a_page_that_lies_on_its_side_are_read() {
    let read = ExtractFolder::with_files([("a.jpg", &jpeg(&render_text(IMAGE_TEXT).turned()) as &[u8])]).json("a.jpg");
    assert_page_text(&read, 0, IMAGE_TEXT);
}

#[test]
fn a_scan_below_stamps_is_looked_at_and_a_background_is_not_told_twice() {
    let stamps = &TEXT_LAYER[..2];
    let sheet = |text: &[&str], says: &str| {
        let mut builder = crate::pdf_builder::Builder::new();
        let mut page = TestPage::blank(1240, 1654);
        page.text(SERIF, 30.0, 100.0, 1140.0, 300.0, says);
        let entries = "/Type /XObject /Subtype /Image /Width 1240 /Height 1654 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode";
        let picture = builder.stream(entries, &jpeg(&page));
        let content = format!("q 600 0 0 800 0 0 cm /Im Do Q {}", crate::pdf_builder::lines(72, 760, text));
        let resources = format!("/Resources << /Font << /F1 3 0 R >> /XObject << /Im {picture} 0 R >> >>");
        builder.page_with(content.as_bytes(), &resources);
        builder.build()
    };
    let scan = ExtractFolder::with_files([("a.pdf", &sheet(stamps, &IMAGE_TEXT.repeat(3)) as &[u8])]).json("a.pdf");
    assert!(page_texts(&scan)[0].matches("frozen fence").count() == 3, "{scan}");
    assert!(page_texts(&scan)[0].contains("bridge would be painted"), "{scan}");
    let slide = ExtractFolder::with_files([("a.pdf", &sheet(stamps, "") as &[u8])]).json("a.pdf");
    assert_eq!(page_texts(&slide)[0].replace('\n', " "), stamps.join(" "));
    assert_eq!(slide["processing_method"], "text_extraction");
}

#[test]
fn a_dense_picture_on_a_small_page_is_read() {
    let mut builder = crate::pdf_builder::Builder::new();
    let page = render_text(IMAGE_TEXT);
    let entries = "/Type /XObject /Subtype /Image /Width 1000 /Height 300 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode";
    let picture = builder.stream(entries, &jpeg(&page));
    let resources = format!("/MediaBox [0 0 100 30] /Resources << /XObject << /Im {picture} 0 R >> >>");
    builder.page_with(b"q 100 0 0 30 0 0 cm /Im Do Q", &resources);
    let bytes = crate::pdf_builder::Builder::build(builder);
    let read = ExtractFolder::with_files([("a.pdf", &bytes as &[u8])]).json("a.pdf");
    assert_page_text(&read, 0, IMAGE_TEXT);
}

#[test]
fn k33_true_words_are_not_replaced_by_what_is_seen_of_them() {
    let title = ["DE89O370I4400532 l1I0O"];
    let read = extract_scan(&[PageContent::Both(&title, IMAGE_TEXT)], "");
    assert!(page_texts(&read)[0].starts_with(title[0]), "{read}");
    assert!(word_f1(&format!("{} {IMAGE_TEXT}", title[0]), page_texts(&read)[0]) > 0.9, "{read}");
}

/// Comments lie over a page and are independent of its contents.
#[test]
fn k33_a_long_comment_is_no_reason_not_to_look() {
    let bytes = pdf(&[PageContent::Scan(IMAGE_TEXT)]);
    let note = format!(
        "/Annots [<< /Type /Annot /Subtype /Text /Rect [10 10 30 30] /Contents ({}) >>] ",
        TEXT_LAYER.join(" ")
    );
    let place = bytes.windows(12).position(|part| part == b"/Type /Page ").unwrap();
    let commented = [&bytes[..place], note.as_bytes(), &bytes[place..]].concat();
    let read = ExtractFolder::with_files([("a.pdf", &commented as &[u8])]).json("a.pdf");
    assert!(page_texts(&read)[0].contains("frozen fence") && page_texts(&read)[0].contains("bridge"), "{read}");
}

#[test]
fn a_value_without_its_sign_is_not_taken_for_a_file() {
    let files = ExtractFolder::with_files([("scan.pdf", &pdf(&[PageContent::Scan(IMAGE_TEXT)]) as &[u8])]);
    let ended = files.run("--ocr off scan.pdf");
    assert_ne!(ended.code, Some(0));
    assert!(ended.stderr.contains("did you mean `--ocr=off`?") && ended.stdout.is_empty(), "{ended:?}");
}

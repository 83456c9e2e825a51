//! Pictures inside documents, and image files.

use serde_json::{Value, json};

use super::sample_images::{IMAGE_TEXT, PageContent, TEXT_LAYER, docx, jpeg, pdf, png, pptx, render_text};
use crate::command::{ExtractFolder, extract_json, page_texts};
use crate::page::word_f1;
use crate::sample_files;

fn blocks(read: &Value) -> Vec<(&str, &str)> {
    let blocks = read["pages"][0]["blocks"].as_array().unwrap();
    blocks.iter().map(|block| (block["kind"].as_str().unwrap(), block["text"].as_str().unwrap())).collect()
}

#[test]
fn k32_k35_words_in_a_picture_are_its_text() {
    let page = render_text(IMAGE_TEXT);
    for (name, bytes) in [("a.png", png(&page)), ("a.jpg", jpeg(&page))] {
        let read = extract_json(name, &bytes);
        assert!(word_f1(IMAGE_TEXT, page_texts(&read)[0]) > 0.9, "{read}");
        assert_eq!((&read["processing_method"], &read["error"]), (&json!("image_analysis"), &Value::Null));
        assert!(read["pages"][0]["confidence"].as_f64().unwrap() > 0.8, "{read}");
    }
}

#[test]
fn k35_pictures_in_a_letter_are_read_where_they_stand() {
    let read = extract_json("a.docx", &docx(&png(&render_text(IMAGE_TEXT))));
    let blocks = blocks(&read);
    let [(_, "Above the picture."), ("image", words), (_, "Below the picture.")] = blocks[..] else {
        panic!("{blocks:?}")
    };
    assert!(word_f1(IMAGE_TEXT, words) > 0.9, "{words}");
    assert_eq!(read["processing_method"], "hybrid");
    let read = ExtractFolder::with_files([("a.docx", &docx(&png(&render_text(IMAGE_TEXT))) as &[u8])])
        .json("--ocr=off a.docx");
    assert_eq!(
        (&read["processing_method"], page_texts(&read)[0].contains("crows")),
        (&json!("text_extraction"), false)
    );
}

#[test]
fn k35_pictures_on_slides_are_read() {
    let read = extract_json("a.pptx", &pptx(&png(&render_text(IMAGE_TEXT))));
    assert!(word_f1(&format!("On the slide {IMAGE_TEXT}"), page_texts(&read)[0]) > 0.9, "{read}");
}

#[test]
fn k35_pictures_on_pages_with_text_are_read() {
    let read = extract_json("a.pdf", &pdf(&[PageContent::Both(&TEXT_LAYER, IMAGE_TEXT)]));
    let words = format!("{} {IMAGE_TEXT}", TEXT_LAYER.join(" "));
    assert!(word_f1(&words, page_texts(&read)[0]) > 0.95, "{read}");
    assert_eq!(read["processing_method"], "hybrid");
    assert!(page_texts(&read)[0].starts_with(TEXT_LAYER[0]), "{read}");
}

#[test]
fn k35_a_picture_that_cannot_be_read_costs_nothing_else() {
    let read = extract_json("a.docx", &docx(&png(&render_text(IMAGE_TEXT))[..400]));
    assert!(page_texts(&read)[0].contains("Above the picture.\n\nBelow the picture."), "{read}");
    assert_ne!(read["warnings"], json!([]), "{read}");
}

#[test]
fn k32_a_picture_without_words_is_known_by_its_name_and_size() {
    let read = extract_json("Harbour-at-dawn_2024.jpg", &sample_files::jpg());
    assert_eq!((&read["processing_method"], &read["error"]), (&json!("image_analysis"), &Value::Null));
    let text = page_texts(&read)[0].to_lowercase();
    for word in ["harbour at dawn", "2024", "8", "6"] {
        assert!(text.contains(word), "{word} in {read}");
    }
    let off = ExtractFolder::with_files([("harbour.png", &sample_files::png() as &[u8])]).json("--ocr=off harbour.png");
    assert!(page_texts(&off)[0].contains("harbour"), "{off}");
}

#[test]
fn k32_letters_drawn_as_shapes_are_read() {
    // Letters drawn as strokes; text elements in an SVG need no OCR.
    let strokes = "M60,40 V200 M60,120 H140 M140,40 V200 M180,40 V200 M180,40 H260 M180,120 H240 M180,200 H260 \
                   M300,40 V200 H370 M410,40 V200 H480 M520,40 H600 V200 H520 Z";
    let svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="660" height="240"><path d="{strokes}" fill="none" stroke="black" stroke-width="14"/></svg>"#
    );
    let read = extract_json("a.svg", svg.as_bytes());
    assert_eq!(read["processing_method"], "image_analysis");
    assert!(page_texts(&read)[0].to_uppercase().contains("HELLO"), "{read}");
}

#[test]
fn k32_what_a_picture_says_about_itself_is_told_once() {
    let mut bytes = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    image::ImageEncoder::write_image(encoder, &[200; 64 * 48], 64, 48, image::ExtendedColorType::L8).unwrap();
    let text = b"Title\0The lost harbour";
    let mut chunk = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    chunk.extend(b"tEXt");
    chunk.extend(text);
    let mut sum = flate2::Crc::new();
    sum.update(&chunk[4..]);
    chunk.extend(sum.sum().to_be_bytes());
    // After the 33 bytes of the header.
    bytes.splice(33..33, chunk);
    let read = extract_json("a.png", &bytes);
    assert_eq!(page_texts(&read)[0].matches("The lost harbour").count(), 1, "{read}");
    assert_eq!(read["metadata"]["title"], "The lost harbour");
}

#[test]
fn white_letters_on_nothing_are_read() {
    let page = render_text(IMAGE_TEXT);
    let dots = page.gray.iter().flat_map(|gray| [255, 255, 255, 255 - gray]).collect();
    let picture = image::RgbaImage::from_raw(page.width as u32, page.height as u32, dots).unwrap();
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let read = extract_json("a.png", &bytes.into_inner());
    assert!(word_f1(IMAGE_TEXT, page_texts(&read)[0]) > 0.9, "{read}");
}

#[test]
fn the_same_picture_stored_twice_is_read_once() {
    let read = extract_json(
        "a.pdf",
        &pdf(&[PageContent::Both(&TEXT_LAYER, IMAGE_TEXT), PageContent::Both(&TEXT_LAYER, IMAGE_TEXT)]),
    );
    assert_eq!(read.to_string().matches("\"kind\":\"image\"").count(), 1, "{read}");
}

#[test]
fn s12_a_picture_that_is_too_much_for_a_worker_does_not_cost_the_text_around_it() {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbaImage::from_pixel(7000, 7000, image::Rgba([9, 9, 9, 200]))
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    let files =
        ExtractFolder::with_files([("a.docx", &docx(&bytes.into_inner()) as &[u8])]).setting("memory", "100 MiB");
    let read = files.json("a.docx");
    assert!(page_texts(&read)[0].contains("Above the picture.\n\nBelow the picture."), "{read}");
    assert_eq!((&read["error"], &read["partial"]), (&json!("memory_limit"), &json!(true)), "{read}");
    assert_eq!(read["processing_method"], "text_extraction");
}

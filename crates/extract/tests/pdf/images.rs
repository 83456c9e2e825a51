//! Images on pages with text: which are listed, and their pixels.

use corbie_extract::{Error, Format, Limits, Options, Page, PdfPages, Raster, document};

use crate::pdf_builder::{Builder, lines, text};

/// More than a hundred characters, so that the page is not a scan.
const PROSE: [&str; 3] = [
    "A page that says this much of itself is read as text,",
    "and what is shown beside that text is a picture,",
    "which may have words of its own.",
];
const GREY: &str = "/Type /XObject /Subtype /Image /Width 64 /Height 16 /ColorSpace /DeviceGray /BitsPerComponent 8";

/// White, with a dark top left corner of eight by eight pixels.
fn corner() -> Vec<u8> {
    (0..16).flat_map(|y| (0..64).map(move |x| if x < 8 && y < 8 { 0 } else { 255 })).collect()
}

/// A page of prose that shows image `picture` as specified by the content.
fn with_picture(builder: &mut Builder, picture: usize, content: &str) {
    let fonts = "/Font << /F1 3 0 R >>";
    let content = lines(60, 700, &PROSE) + content;
    let resources = format!("/Resources << {fonts} /XObject << /I {picture} 0 R >> >>");
    builder.page_with(content.as_bytes(), &resources);
}

/// A one-page file that shows an image once, with this matrix.
fn file(entries: &str, dots: &[u8], matrix: &str) -> Vec<u8> {
    let mut builder = Builder::new();
    let picture = builder.stream(entries, dots);
    with_picture(&mut builder, picture, &format!("q {matrix} cm /I Do Q"));
    builder.build()
}

fn pages(file: &[u8]) -> Vec<Page> {
    document(file, Format::Pdf, &Options::default()).expect("the file can be read").pages
}

fn listed(file: &[u8]) -> Vec<usize> {
    pages(file).iter().map(|page| page.images.len()).collect()
}

fn pictures(file: &[u8], limits: &Limits) -> Vec<(usize, Result<Raster, Error>)> {
    let mut open = PdfPages::open(file.to_vec()).expect("it opens");
    let mut found = Vec::new();
    for page in pages(file) {
        open.pictures(&page, limits, &mut |index, raster| found.push((index, raster))).expect("the page is drawn");
    }
    found
}

/// Size of the only image, and its corners: top left, top right, bottom left, bottom right.
fn corners(file: &[u8]) -> ((u32, u32), [u8; 4]) {
    let found = pictures(file, &Limits::default());
    let [(0, Ok(Raster { width, height, rgb }))] = found.as_slice() else { panic!("one picture: {found:?}") };
    let dot = |x: u32, y: u32| rgb[3 * (y * width + x) as usize];
    ((*width, *height), [dot(0, 0), dot(width - 1, 0), dot(0, height - 1), dot(width - 1, height - 1)])
}

#[test]
fn k35_a_picture_beside_text_is_listed_where_it_stands() {
    let mut builder = Builder::new();
    let picture = builder.stream(GREY, &corner());
    let below = text("F1", 10, 60, 400, "Below");
    with_picture(&mut builder, picture, &format!("q 200 0 0 50 60 500 cm /I Do Q {below}"));
    let page = pages(&builder.build()).remove(0);
    let [image] = page.images.as_slice() else { panic!("one picture") };
    assert_eq!((image.width, image.height, image.media_type.as_deref()), (64, 16, None));
    assert_eq!((page.blocks[image.after].text.as_str(), page.scanned), ("Below", false));
    assert!(image.after > 0);
}

#[test]
fn k35_pictures_are_listed_in_the_order_they_are_read() {
    let mut builder = Builder::new();
    let [below, above] = [100, 200].map(|width| builder.stream(&GREY.replace("64", &width.to_string()), &[0; 3200]));
    let content = lines(60, 700, &PROSE)
        + "q 200 0 0 50 60 300 cm /B Do Q q 200 0 0 50 60 600 cm /A Do Q "
        + &text("F1", 10, 60, 400, "Between them");
    let shown = format!("/XObject << /A {above} 0 R /B {below} 0 R >>");
    builder.page_with(content.as_bytes(), &format!("/Resources << /Font << /F1 3 0 R >> {shown} >>"));
    let file = builder.build();
    let page = pages(&file).remove(0);
    assert_eq!(page.images.iter().map(|image| image.width).collect::<Vec<_>>(), [200, 100]);
    assert_eq!(page.blocks[page.images[0].after].text, "Between them");
    for (index, raster) in pictures(&file, &Limits::default()) {
        assert_eq!(raster.expect("a picture").width, page.images[index].width);
    }
}

#[test]
fn k35_a_jpeg_says_that_it_is_one() {
    let entries = format!("{GREY} /Filter /DCTDecode");
    let image = pages(&file(&entries, b"\xff\xd8", "200 0 0 50 60 500")).remove(0).images.remove(0);
    assert_eq!(image.media_type.as_deref(), Some("image/jpeg"));
}

#[test]
fn k35_a_picture_with_text_on_it_is_a_background_or_a_scan_that_was_read() {
    for mode in [0, 3] {
        let mut builder = Builder::new();
        let picture = builder.stream(GREY, &corner());
        let over = text("F1", 10, 70, 520, "Over");
        with_picture(&mut builder, picture, &format!("q 200 0 0 50 60 500 cm /I Do Q {mode} Tr {over}"));
        assert_eq!(listed(&builder.build()), [0], "text is drawn in mode {mode}");
    }
}

#[test]
fn k35_pictures_too_small_for_words_are_not_listed() {
    assert_eq!(listed(&file(GREY, &corner(), "39 0 0 10 60 500")), [0]);
    assert_eq!(listed(&file(GREY, &corner(), "200 0 0 9 60 500")), [0]);
    assert_eq!(listed(&file(&GREY.replace("64", "63"), &corner(), "200 0 0 50 60 500")), [0]);
    assert_eq!(listed(&file(GREY, &corner(), "40 0 0 10 60 500")), [1]);
    // A rotated image may contain as much text.
    assert_eq!(listed(&file(GREY, &corner(), "0 40 -10 0 60 500")), [1]);
}

#[test]
fn k35_a_picture_on_every_page_is_listed_once_and_no_more_than_allowed() {
    let mut builder = Builder::new();
    let logo = builder.stream(GREY, &corner());
    let other = builder.stream(GREY, &[0; 1024]);
    for picture in [logo, logo, other, logo] {
        with_picture(&mut builder, picture, "q 200 0 0 50 60 500 cm /I Do Q q 100 0 0 50 60 300 cm /I Do Q");
    }
    let file = builder.build();
    assert_eq!(listed(&file), [1, 0, 1, 0]);
    assert_eq!(pictures(&file, &Limits::default()).len(), 2);
    let limits = Limits { images: 1, ..Limits::default() };
    let read = document(&file, Format::Pdf, &Options { limits, ..Options::default() }).expect("it can be read");
    assert_eq!(read.pages.iter().map(|page| page.images.len()).sum::<usize>(), 1);
    assert_eq!((read.warnings.len(), read.warnings[0].page), (1, Some(3)));
}

#[test]
fn k35_pictures_come_as_they_are_shown() {
    let shown = |matrix: &str| corners(&file(GREY, &corner(), matrix));
    assert_eq!(shown("200 0 0 50 60 500"), ((64, 16), [0, 255, 255, 255]));
    assert_eq!(shown("200 0 0 -50 60 550"), ((64, 16), [255, 255, 0, 255]), "upside down");
    assert_eq!(shown("-200 0 0 50 260 500"), ((64, 16), [255, 0, 255, 255]), "mirrored");
    assert_eq!(shown("0 -200 50 0 60 500"), ((16, 64), [255, 0, 255, 255]), "turned to the right");
    assert_eq!(shown("0 200 -50 0 110 300"), ((16, 64), [255, 255, 0, 255]), "turned to the left");
    assert_eq!(shown("199 3 -1 50 60 500"), ((64, 16), [0, 255, 255, 255]), "a little askew");
}

#[test]
fn k35_pictures_on_a_turned_page_come_as_they_are_shown() {
    let mut builder = Builder::new();
    let picture = builder.stream(GREY, &corner());
    let content = lines(60, 700, &PROSE) + "q 200 0 0 50 60 500 cm /I Do Q";
    let resources = format!("/Rotate 90 /Resources << /Font << /F1 3 0 R >> /XObject << /I {picture} 0 R >> >>");
    builder.page_with(content.as_bytes(), &resources);
    assert_eq!(corners(&builder.build()), ((16, 64), [255, 0, 255, 255]));
}

#[test]
fn k35_what_is_transparent_is_white_and_a_stencil_is_black() {
    let mut builder = Builder::new();
    // Black, but visible only in the top left corner; the mask has a lower resolution than the image.
    let mask = [[255, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat();
    let mask = builder.stream(&GREY.replace("64", "8").replace("16", "2"), &mask);
    let picture = builder.stream(&format!("{GREY} /SMask {mask} 0 R"), &[0; 1024]);
    with_picture(&mut builder, picture, "q 200 0 0 50 60 500 cm /I Do Q");
    assert_eq!(corners(&builder.build()), ((64, 16), [0, 255, 255, 255]));
    let stencil = "/Type /XObject /Subtype /Image /Width 64 /Height 16 /ImageMask true /BitsPerComponent 1";
    let mut dots = [0xff; 128];
    (0..8).for_each(|row| dots[8 * row] = 0);
    assert_eq!(corners(&file(stencil, &dots, "1 0 0 rg 200 0 0 50 60 500")), ((64, 16), [0, 255, 255, 255]));
}

#[test]
fn k35_a_picture_too_large_or_broken_is_an_error_of_its_own() {
    let large = file(GREY, &corner(), "200 0 0 50 60 500");
    let few = Limits { pixels: 1023, ..Limits::default() };
    assert_eq!(pictures(&large, &few), [(0, Err(Error::TooMuch { what: "pixels", most: 1023 }))]);
    let huge = file(&GREY.replace("64", "4000000000"), b"", "200 0 0 50 60 500");
    assert_eq!(pictures(&huge, &Limits::default())[0].1.as_ref().unwrap_err().kind(), "limit_exceeded");
    let broken = file(&format!("{GREY} /Filter /DCTDecode"), b"\xff\xd8", "200 0 0 50 60 500");
    assert_eq!(pictures(&broken, &Limits::default())[0].1.as_ref().unwrap_err().kind(), "corrupted_file");
}

#[test]
fn a_panic_of_whoever_takes_the_pictures_goes_on() {
    let file = file(GREY, &corner(), "200 0 0 50 60 500");
    let page = pages(&file).remove(0);
    let taken = std::panic::catch_unwind(|| {
        let mut open = PdfPages::open(file).expect("it opens");
        let _ = open.pictures(&page, &Limits::default(), &mut |_, _| panic!("no more"));
    });
    assert_eq!(taken.unwrap_err().downcast_ref::<&str>(), Some(&"no more"));
}

#[test]
fn a_file_is_drawn_from_for_as_long_as_anybody_wants() {
    let mut builder = Builder::new();
    builder.page_with(b"0 0 10 10 re f", "/MediaBox [0 0 10 10]");
    let mut pages = PdfPages::open(builder.build()).expect("it opens");
    for _ in 0..1000 {
        assert_eq!(pages.raster(1, 72.0, &Limits::default()).expect("a picture").rgb, [0; 300]);
    }
    assert!(matches!(PdfPages::open(b"no file".to_vec()), Err(Error::Corrupted(_))));
}

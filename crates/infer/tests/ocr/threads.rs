//! One engine shared by several threads.

use corbie_infer::ocr::ImageText;

use crate::page::{SANS, SERIF, TestPage, points};
use crate::read;
use crate::texts::{ENGLISH, GERMAN, HARBOUR};

#[test]
fn threads_that_share_an_engine_read_what_one_alone_reads() {
    let mut pages = [(SANS, ENGLISH), (SERIF, GERMAN), (SERIF, HARBOUR)].map(|(face, text)| {
        let mut page = TestPage::blank(1240, 500);
        page.text(face, points(8.0), 90.0, 1150.0, 60.0, text);
        page
    });
    pages[1] = pages[1].skewed(1.5);
    pages[2] = pages[2].turned();
    let alone: Vec<ImageText> = pages.iter().map(read).collect();
    assert!(alone.iter().all(|found| !found.lines.is_empty()));
    std::thread::scope(|scope| {
        // Each thread starts with a different page, so that different pages are processed concurrently.
        for first in 0..3 {
            let (pages, alone) = (&pages, &alone);
            scope.spawn(move || {
                for index in (0..3).map(|step| (first + step) % 3) {
                    assert_eq!(read(&pages[index]), alone[index], "page {index}");
                }
            });
        }
    });
}

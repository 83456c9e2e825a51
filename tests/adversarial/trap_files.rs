//! Files that a client must not reach, and malicious files.

use std::fs;
use std::path::Path;

use crate::archive::{Archive, HEAD};
use crate::sample_files::docx_with_body;

/// Fills a folder; files under `allowed` may be added.
pub(crate) fn create(folder: &Path, allowed: &Path) {
    let write = |path: &Path, content: &[u8]| fs::write(path, content).expect("a new file");
    fs::create_dir_all(allowed).expect("a new folder");
    fs::create_dir(folder.join("allowed-not")).expect("a new folder");
    write(&folder.join("outside.txt"), b"The forbidden words of another.");
    write(&folder.join("allowed-not/near.txt"), b"The forbidden words of a neighbour.");
    write(&allowed.join("fine.txt"), b"Crows are clever birds.");
    let bomb = docx_bomb();
    write(&allowed.join("bomb.docx"), &bomb);
    write(
        &allowed.join("laughs.svg"),
        billion_laughs("<svg xmlns='http://www.w3.org/2000/svg'><text>", "</text></svg>").as_bytes(),
    );
    write(&allowed.join("laughs.docx"), &billion_laughs_docx());
    write(&allowed.join("reader.svg"), xxe_svg(&folder.join("outside.txt")).as_bytes());
    write(&allowed.join("no.pdf"), b"%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 1 0 R /Kids [1 0 R] >>\n%%EOF");
    write(&allowed.join("cut.docx"), &bomb[..100]);
    write(&allowed.join("huge.png"), HUGE_PNG_HEADER);
    write(&allowed.join("empty.txt"), b"");
    #[cfg(unix)]
    create_special_files(folder, allowed);
}

#[cfg(unix)]
fn create_special_files(folder: &Path, allowed: &Path) {
    use std::os::unix::fs::symlink;
    let link = |to: &Path, at: &str| symlink(to, allowed.join(at)).expect("a new link");
    link(&folder.join("outside.txt"), "link.txt");
    link(folder, "up");
    link(Path::new("/dev/zero"), "zero.txt");
    link(Path::new("/proc/self/environ"), "environ.txt");
    link(&allowed.join("itself.txt"), "itself.txt");
    let pipe = std::process::Command::new("mkfifo").arg(allowed.join("pipe.txt")).status();
    assert!(pipe.is_ok_and(|made| made.success()), "a pipe can be made");
}

/// A part that inflates a thousandfold.
fn docx_bomb() -> Vec<u8> {
    docx_with_body(&format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "a".repeat(300 << 20)))
}

/// Entities that grow tenfold, nine times.
fn billion_laughs(before: &str, after: &str) -> String {
    let entity = |level: usize| format!("<!ENTITY a{level} \"{}\">", format!("&a{};", level - 1).repeat(10));
    let entities: String = (1..10).map(entity).collect();
    format!("{HEAD}<!DOCTYPE svg [<!ENTITY a0 \"ha\">{entities}]>{before}&a9;{after}")
}

fn billion_laughs_docx() -> Vec<u8> {
    Archive::of("word/document.xml").part("word/document.xml", billion_laughs("<w:document>", "</w:document>")).bytes()
}

/// A drawing that tries to include another file.
fn xxe_svg(file: &Path) -> String {
    let entity = format!("<!DOCTYPE svg [<!ENTITY x SYSTEM \"file://{}\">]>", file.display());
    format!("{entity}<svg xmlns='http://www.w3.org/2000/svg'><text>&x; a crow</text></svg>")
}

/// The header of a picture of two thousand million pixels in width and height.
const HUGE_PNG_HEADER: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\0\0\0\x9b\xab\x9c\x31\0\0\0\0IEND\xaeB`\x82";

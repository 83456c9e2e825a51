//! Embedded sample documents: papers of a fictional museum.

use std::io;
use std::path::Path;

/// Name of the folder they are written to.
pub(super) const FOLDER: &str = "gull-rock";

/// Name and content of each file. `documents/README.md` describes their origin.
const FILES: [(&str, &[u8]); 7] = [
    ("handbook.pdf", include_bytes!("documents/handbook.pdf")),
    ("history.html", include_bytes!("documents/history.html")),
    ("loans.docx", include_bytes!("documents/loans.docx")),
    ("notice.png", include_bytes!("documents/notice.png")),
    ("rota.csv", include_bytes!("documents/rota.csv")),
    ("school-tour.md", include_bytes!("documents/school-tour.md")),
    ("visitors.xlsx", include_bytes!("documents/visitors.xlsx")),
];

/// Writes them as files, so that they are imported like any other file.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    FILES.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}

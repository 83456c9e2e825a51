//! The sample documents, which are inside the program: papers of a museum that does not exist.

use std::io;
use std::path::Path;

/// The name of the folder they are written to.
pub(super) const FOLDER: &str = "gull-rock";

/// Each with its name. `documents/README.md` says where they come from.
const FILES: [(&str, &[u8]); 7] = [
    ("handbook.pdf", include_bytes!("documents/handbook.pdf")),
    ("history.html", include_bytes!("documents/history.html")),
    ("loans.docx", include_bytes!("documents/loans.docx")),
    ("notice.png", include_bytes!("documents/notice.png")),
    ("rota.csv", include_bytes!("documents/rota.csv")),
    ("school-tour.md", include_bytes!("documents/school-tour.md")),
    ("visitors.xlsx", include_bytes!("documents/visitors.xlsx")),
];

/// Writes them as files, so that they are read the way any file is.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    FILES.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}

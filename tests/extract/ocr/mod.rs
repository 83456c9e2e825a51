//! Text that is there only as a picture of it.

mod made;
mod pictures;
mod scans;
mod tesseract;
mod vision;

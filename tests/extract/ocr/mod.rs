//! OCR.

mod made;
mod pictures;
mod scans;
mod tesseract;
mod vision;

//! OCR.

mod images;
mod sample_images;
mod scans;
mod tesseract;
mod vision;

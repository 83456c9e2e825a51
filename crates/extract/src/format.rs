//! Supported formats, by file extension and wire name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A supported format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Pdf,
    Docx,
    Pptx,
    Xlsx,
    Html,
    Svg,
    Jpg,
    Png,
    #[serde(rename = "md")]
    Markdown,
    #[serde(rename = "txt")]
    Text,
    Csv,
}

impl Format {
    /// Whether the file is a single image.
    pub fn is_image(self) -> bool {
        matches!(self, Format::Jpg | Format::Png | Format::Svg)
    }

    pub const ALL: [Format; 11] = [
        Format::Pdf,
        Format::Docx,
        Format::Pptx,
        Format::Xlsx,
        Format::Html,
        Format::Svg,
        Format::Jpg,
        Format::Png,
        Format::Markdown,
        Format::Text,
        Format::Csv,
    ];

    /// By file extension, case-insensitive, without the dot (K-24, K-42).
    pub fn from_extension(extension: &str) -> Option<Format> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "pdf" => Format::Pdf,
            "docx" => Format::Docx,
            "pptx" => Format::Pptx,
            "xlsx" => Format::Xlsx,
            "html" | "htm" => Format::Html,
            "svg" => Format::Svg,
            "jpg" | "jpeg" => Format::Jpg,
            "png" => Format::Png,
            "md" | "markdown" => Format::Markdown,
            "txt" => Format::Text,
            "csv" => Format::Csv,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Format::Pdf => "pdf",
            Format::Docx => "docx",
            Format::Pptx => "pptx",
            Format::Xlsx => "xlsx",
            Format::Html => "html",
            Format::Svg => "svg",
            Format::Jpg => "jpg",
            Format::Png => "png",
            Format::Markdown => "md",
            Format::Text => "txt",
            Format::Csv => "csv",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

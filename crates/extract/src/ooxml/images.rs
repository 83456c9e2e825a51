//! Embedded images.

use std::collections::HashSet;

use crate::Image;
use crate::image::embedded_size;

/// Images seen so far: a logo on every slide is returned once.
#[derive(Debug, Default)]
pub(super) struct ImageRegistry {
    names: HashSet<String>,
    taken: usize,
    omitted: usize,
    /// Remaining bytes for image data; `None` if image data was not requested.
    remaining_bytes: Option<usize>,
    /// The data of an image exceeded the remaining bytes.
    pub(super) is_full: bool,
}

/// Maximum bytes of image data per document.
pub(super) const MAX_IMAGE_BYTES: usize = 32 << 20;
/// Length of the prefix that contains the image size. In a JPEG, colour profiles and a thumbnail may precede the size.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// The media type of an image by its file name. Metafiles have none: they are large and not supported.
pub(super) fn media_type(name: &str) -> Option<&'static str> {
    let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" | "jpe" | "jfif" => "image/jpeg",
        "gif" => "image/gif",
        "bmp" | "dib" => "image/bmp",
        "tif" | "tiff" => "image/tiff",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

// === impl ===

impl ImageRegistry {
    pub(super) fn new(with_bytes: bool) -> ImageRegistry {
        ImageRegistry { remaining_bytes: with_bytes.then_some(MAX_IMAGE_BYTES), ..ImageRegistry::default() }
    }

    /// Bytes to read of the next image: one more than the remaining room shows that it is too large.
    pub(super) fn max_read_bytes(&self) -> usize {
        self.remaining_bytes.map_or(MAX_HEADER_BYTES, |room| MAX_HEADER_BYTES.max(room + 1))
    }

    /// An image as stored, with its data if requested and within the limit.
    pub(super) fn image(&mut self, media_type: &str, mut bytes: Vec<u8>, description: Option<String>) -> Image {
        let (width, height) = size(&bytes).unwrap_or_default();
        let description = description.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let bytes = match self.remaining_bytes.map(|room| room.checked_sub(bytes.len())) {
            Some(Some(room)) => {
                self.remaining_bytes = Some(room);
                bytes.shrink_to_fit();
                bytes
            }
            Some(None) => {
                self.is_full = true;
                Vec::new()
            }
            None => Vec::new(),
        };
        Image { media_type: Some(media_type.to_owned()), bytes, width, height, description, ..Image::default() }
    }

    pub(super) fn is_new(&mut self, name: &str) -> bool {
        self.names.insert(name.to_ascii_lowercase())
    }

    pub(super) fn may_take(&mut self, most: usize) -> bool {
        let may = self.taken < most;
        if may {
            self.taken += 1;
        } else {
            self.omitted += 1;
        }
        may
    }

    pub(super) fn is_first_omitted(&self) -> bool {
        self.omitted == 1
    }
}

/// The size from the header of an image.
fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        let side = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        return Some((side(16)?, side(20)?));
    }
    if !bytes.starts_with(b"\xff\xd8") {
        return embedded_size(bytes);
    }
    let short = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    while *bytes.get(at)? == 0xff {
        match *bytes.get(at + 1)? {
            0xff => at += 1,
            // A start-of-frame marker of any coding; C4, C8 and CC are other segments in the same range.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((short(at + 7)?.into(), short(at + 5)?.into()));
            }
            _ => at += 2 + usize::from(short(at + 2)?.max(2)),
        }
    }
    None
}

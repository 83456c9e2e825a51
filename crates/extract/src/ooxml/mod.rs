//! Shared OOXML code for DOCX, PPTX and XLSX: a ZIP archive of XML parts, connected by relationships.
//!
//! A [`Package`] reads parts and enforces the limits on their output. Optional parts (notes, comments, properties) may
//! be missing or corrupted: this gives a warning, and the rest is still read. An exceeded limit is always an error.

mod drawing;
mod images;
mod math;
mod number_text;
mod properties;
mod relationships;
mod xml;
mod zip;

use crate::{Block, Error, Image, Limits, Metadata, Options, Page, Warning, sniff};

pub(crate) use crate::outline::outline;
pub(crate) use math::math;
pub(crate) use number_text::{number_text, round_to_15_digits};
pub(crate) use relationships::Relationships;
pub(crate) use xml::{Tag, Xml};

/// An open OOXML package.
pub(crate) struct Package<'a> {
    pub(crate) limits: Limits,
    pub(crate) warnings: Vec<Warning>,
    archive: zip::Archive<'a>,
    /// Relationships of the package itself.
    root: Relationships,
    pictures: images::ImageRegistry,
    /// Remaining characters within the limit.
    characters: u64,
    blocks: usize,
    cells: u64,
}

// === impl ===

impl<'a> Package<'a> {
    pub(crate) fn open(bytes: &'a [u8], options: &Options) -> Result<Package<'a>, Error> {
        if sniff::is_older_office(bytes) {
            let what = "it is a legacy Office file (.doc, .ppt or .xls) with a newer extension";
            let is_encrypted = sniff::is_encrypted(bytes);
            return Err(if is_encrypted { Error::PasswordProtected } else { Error::Corrupted(what.to_owned()) });
        }
        if !bytes.starts_with(b"PK") {
            return Err(Error::Corrupted("it is not a document of this format".to_owned()));
        }
        let limits = options.limits.clone();
        let archive = zip::Archive::open(bytes, &limits)?;
        let (root, pictures) = (Relationships::default(), images::ImageRegistry::new(options.pictures));
        let characters = limits.characters;
        let mut package =
            Package { limits, warnings: Vec::new(), archive, root, pictures, characters, blocks: 0, cells: 0 };
        package.root = package.relationships("")?;
        Ok(package)
    }

    /// The main part of the document.
    pub(crate) fn main_part(&self, usual: &str) -> Result<String, Error> {
        let named = self.root.of_kind("officeDocument").find(|name| self.archive.contains(name)).map(str::to_owned);
        match named {
            Some(name) => Ok(name),
            None if self.archive.contains(usual) => Ok(usual.to_owned()),
            None => Err(Error::Corrupted(format!("part `{usual}` is missing"))),
        }
    }

    /// The XML of a part; `None` if it does not exist.
    pub(crate) fn markup(&mut self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.archive.read(name)?.map(xml::decode))
    }

    /// Reads an optional part. If it is corrupted, adds a warning.
    pub(crate) fn try_part<T: Default>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Xml<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let limits = self.limits.clone();
        let outcome = match self.markup(name) {
            Ok(Some(markup)) => read(&mut Xml::new(&markup, name, &limits)),
            Ok(None) => return Ok(T::default()),
            Err(error) => Err(error),
        };
        self.error_to_warning(outcome)
    }

    /// Converts an error about a corrupted part to a warning. Exceeded limits stay errors.
    pub(crate) fn error_to_warning<T: Default>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome {
            Err(Error::Corrupted(what)) => {
                self.warnings.push(Warning::new(format!("some content was skipped: {what}")));
                Ok(T::default())
            }
            outcome => outcome,
        }
    }

    /// The relationships of a part; those of the package for an empty name.
    pub(crate) fn relationships(&mut self, part: &str) -> Result<Relationships, Error> {
        self.try_part(&relationships::part_name(part), |xml| Relationships::read(xml, part))
    }

    /// The core properties of the document.
    pub(crate) fn metadata(&mut self) -> Result<Metadata, Error> {
        let named = self.root.of_kind("core-properties").next().unwrap_or("docProps/core.xml").to_owned();
        self.try_part(&named, properties::read)
    }

    /// Counts blocks while they are created.
    pub(crate) fn count_blocks(&mut self, more: usize) -> Result<(), Error> {
        self.blocks += more;
        self.limits.check_blocks(self.blocks)
    }

    /// Counts cells while they are created: cells covered by a spanning cell take no bytes in the file.
    pub(crate) fn count_cells(&mut self, more: usize) -> Result<(), Error> {
        self.cells += more as u64;
        let most = self.limits.cells;
        if self.cells > most { Err(Error::TooMuch { what: "cells", most }) } else { Ok(()) }
    }

    /// The text of a chart part.
    pub(crate) fn chart(&mut self, name: &str) -> Result<Vec<Block>, Error> {
        let blocks = self.try_part(name, drawing::chart)?;
        self.count_blocks(blocks.len())?;
        Ok(blocks)
    }

    /// The text of a diagram part.
    pub(crate) fn diagram(&mut self, name: &str) -> Result<Vec<Block>, Error> {
        let blocks = self.try_part(name, drawing::diagram)?;
        self.count_blocks(blocks.len())?;
        Ok(blocks)
    }

    /// Counts the characters of extracted text.
    pub(crate) fn count(&mut self, text: &str) -> Result<(), Error> {
        let more = text.chars().count() as u64;
        let too_much = Error::TooMuch { what: "characters of text", most: self.limits.characters };
        self.characters = self.characters.checked_sub(more).ok_or(too_much)?;
        Ok(())
    }

    /// Adds an image to a page after `after` blocks, unless the document already has it.
    pub(crate) fn picture(
        &mut self,
        page: &mut Page,
        after: usize,
        name: &str,
        description: Option<String>,
    ) -> Result<(), Error> {
        let Some(media_type) = images::media_type(name).filter(|_| self.pictures.is_new(name)) else { return Ok(()) };
        if !self.pictures.may_take(self.limits.images) {
            if self.pictures.is_first_omitted() {
                self.warnings.push(Warning::on_page(
                    page.number,
                    format!("only the first {} images are kept", self.limits.images),
                ));
            }
            return Ok(());
        }
        let was_full = self.pictures.is_full;
        match self.archive.read_head(name, self.pictures.max_read_bytes()) {
            Ok(bytes) => {
                let image = bytes.map(|bytes| Image { after, ..self.pictures.image(media_type, bytes, description) });
                page.images.extend(image);
                if self.pictures.is_full && !was_full {
                    let most = images::MAX_IMAGE_BYTES >> 20;
                    let message = format!(
                        "only {most} MiB of images are kept; further images are listed without \
                        content"
                    );
                    self.warnings.push(Warning::on_page(page.number, message));
                }
            }
            Err(Error::Corrupted(what)) => {
                self.warnings.push(Warning::on_page(page.number, format!("an image was skipped: {what}")))
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

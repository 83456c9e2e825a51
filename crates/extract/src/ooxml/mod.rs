//! What DOCX, PPTX and XLSX have in common: parts of XML in a zip archive, tied together by relationships.
//!
//! A [`Package`] hands out parts and counts what they make of themselves. Parts that only add to a document (notes,
//! comments, properties) may be missing or broken: that is a warning, and the rest is still read. A limit that is
//! reached ends the work, whatever part reached it.

mod drawing;
mod figure;
mod math;
mod picture;
mod properties;
mod relations;
mod xml;
mod zip;

use crate::{Block, Error, Image, Limits, Metadata, Options, Page, Warning, sniff};

pub(crate) use crate::outline::outline;
pub(crate) use figure::{figure, rounded};
pub(crate) use math::math;
pub(crate) use relations::Relations;
pub(crate) use xml::{Tag, Xml};

/// An open document.
pub(crate) struct Package<'a> {
    pub(crate) limits: Limits,
    pub(crate) warnings: Vec<Warning>,
    archive: zip::Archive<'a>,
    /// The parts that the package itself names.
    root: Relations,
    pictures: picture::Seen,
    /// Characters that may still come.
    characters: u64,
    blocks: usize,
    cells: u64,
}

// === impl ===

impl<'a> Package<'a> {
    pub(crate) fn open(bytes: &'a [u8], options: &Options) -> Result<Package<'a>, Error> {
        if sniff::is_older_office(bytes) {
            let what = "it is in the older format (.doc, .ppt or .xls) under a newer name";
            let is_encrypted = sniff::is_encrypted(bytes);
            return Err(if is_encrypted { Error::PasswordProtected } else { Error::Corrupted(what.to_owned()) });
        }
        if !bytes.starts_with(b"PK") {
            return Err(Error::Corrupted("it is not a document of this format".to_owned()));
        }
        let limits = options.limits.clone();
        let archive = zip::Archive::open(bytes, &limits)?;
        let (root, pictures) = (Relations::default(), picture::Seen::new(options.pictures));
        let characters = limits.characters;
        let mut package =
            Package { limits, warnings: Vec::new(), archive, root, pictures, characters, blocks: 0, cells: 0 };
        package.root = package.relations("")?;
        Ok(package)
    }

    /// The part that everything else hangs on.
    pub(crate) fn main_part(&self, usual: &str) -> Result<String, Error> {
        let named = self.root.of_kind("officeDocument").find(|name| self.archive.contains(name)).map(str::to_owned);
        match named {
            Some(name) => Ok(name),
            None if self.archive.contains(usual) => Ok(usual.to_owned()),
            None => Err(Error::Corrupted(format!("its part `{usual}` is missing"))),
        }
    }

    /// The markup of a part; none where there is no such part.
    pub(crate) fn markup(&mut self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.archive.read(name)?.map(xml::decode))
    }

    /// Reads a part that may be missing or broken, and says so in a warning.
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
        self.forgive(outcome)
    }

    /// Makes a warning of a part that is broken. Limits stay errors.
    pub(crate) fn forgive<T: Default>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome {
            Err(Error::Corrupted(what)) => {
                self.warnings.push(Warning::new(format!("something was left out: {what}")));
                Ok(T::default())
            }
            outcome => outcome,
        }
    }

    /// The parts that a part names; those of the whole package for an empty name.
    pub(crate) fn relations(&mut self, part: &str) -> Result<Relations, Error> {
        self.try_part(&relations::part_name(part), |xml| Relations::read(xml, part))
    }

    /// What the document says about itself.
    pub(crate) fn metadata(&mut self) -> Result<Metadata, Error> {
        let named = self.root.of_kind("core-properties").next().unwrap_or("docProps/core.xml").to_owned();
        self.try_part(&named, properties::read)
    }

    /// Takes note of blocks while they are made.
    pub(crate) fn count_blocks(&mut self, more: usize) -> Result<(), Error> {
        self.blocks += more;
        self.limits.check_blocks(self.blocks)
    }

    /// Takes note of cells while they are made: those that a wide one covers cost a file nothing.
    pub(crate) fn count_cells(&mut self, more: usize) -> Result<(), Error> {
        self.cells += more as u64;
        let most = self.limits.cells;
        if self.cells > most { Err(Error::TooMuch { what: "cells", most }) } else { Ok(()) }
    }

    /// The words of a chart, which is a part of its own.
    pub(crate) fn chart(&mut self, name: &str) -> Result<Vec<Block>, Error> {
        let blocks = self.try_part(name, drawing::chart)?;
        self.count_blocks(blocks.len())?;
        Ok(blocks)
    }

    /// The words of a diagram.
    pub(crate) fn diagram(&mut self, name: &str) -> Result<Vec<Block>, Error> {
        let blocks = self.try_part(name, drawing::diagram)?;
        self.count_blocks(blocks.len())?;
        Ok(blocks)
    }

    /// Takes note of how much text is handed over.
    pub(crate) fn count(&mut self, text: &str) -> Result<(), Error> {
        let more = text.chars().count() as u64;
        let too_much = Error::TooMuch { what: "characters of text", most: self.limits.characters };
        self.characters = self.characters.checked_sub(more).ok_or(too_much)?;
        Ok(())
    }

    /// Puts a picture on a page, behind so many of its blocks, unless the document has shown it before.
    pub(crate) fn picture(
        &mut self,
        page: &mut Page,
        after: usize,
        name: &str,
        description: Option<String>,
    ) -> Result<(), Error> {
        let Some(media_type) = picture::media_type(name).filter(|_| self.pictures.is_new(name)) else { return Ok(()) };
        if !self.pictures.may_take(self.limits.images) {
            if self.pictures.is_first_left_out() {
                self.warnings.push(Warning::on(page.number, format!("only {} pictures are kept", self.limits.images)));
            }
            return Ok(());
        }
        let was_full = self.pictures.is_full;
        match self.archive.read_head(name, self.pictures.most_bytes()) {
            Ok(bytes) => {
                let image = bytes.map(|bytes| Image { after, ..self.pictures.image(media_type, bytes, description) });
                page.images.extend(image);
                if self.pictures.is_full && !was_full {
                    let most = picture::MOST_BYTES >> 20;
                    let message = format!("only {most} MiB of pictures are kept, and of the others what they are");
                    self.warnings.push(Warning::on(page.number, message));
                }
            }
            Err(Error::Corrupted(what)) => {
                self.warnings.push(Warning::on(page.number, format!("a picture is left out: {what}")))
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

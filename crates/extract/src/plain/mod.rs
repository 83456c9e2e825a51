//! Plain text, Markdown and CSV.
//!
//! All three are text in some encoding and cannot be distinguished reliably: the file name decides.

mod csv;
mod markdown;
mod text;

use crate::{Error, Format, Options, Page, Sink, Summary, encoding, sniff};

pub(crate) fn read(bytes: &[u8], format: Format, options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let text = encoding::decode(bytes);
    if sniff::is_binary(&text) {
        return Err(Error::Corrupted("it is not text".to_owned()));
    }
    let most = options.limits.characters;
    if text.len() as u64 > most && text.chars().count() as u64 > most {
        return Err(Error::TooMuch { what: "characters", most });
    }
    let mut summary = Summary::default();
    let pages = match format {
        Format::Markdown => vec![markdown::blocks(&text, &options.limits, &mut summary.metadata)?],
        Format::Csv => vec![csv::blocks(&text, &options.limits)?],
        _ => text::pages(&text, &options.limits)?,
    };
    sink.pages(pages.len() as u32);
    for (number, blocks) in (1..).zip(pages) {
        sink.page(Page { number, blocks, ..Page::default() });
    }
    Ok(summary)
}

#[cfg(test)]
mod tests;

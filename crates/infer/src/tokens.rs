//! Text to token ids, by the model's own tokenizer.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;

/// The longest text that is looked at. What a model reads of it is far less; this bounds the time to find that out.
pub const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// The part of a text that is tokenized first: enough for any model, small enough to cost nothing.
const FIRST_PART_BYTES: usize = 16 * 1024;

/// The longest part that is tokenized, of a text with next to nothing in it or without spaces.
const LAST_PART_BYTES: usize = 1024 * 1024;

/// What a model will see of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub ids: Vec<u32>,
    /// The text was longer than the model reads; its end has no part in the vector.
    pub truncated: bool,
}

/// A tokenizer with the number of tokens its model reads.
#[derive(Debug)]
pub(crate) struct Reader {
    tokenizer: tokenizers::Tokenizer,
    max_tokens: usize,
    /// How many tokens the model puts around a text, such as `[CLS]` and `[SEP]`.
    around: usize,
}

/// Tells where the tokens of texts stand, for those who cut them. Cheap to clone, and used beside a running model.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    reader: Arc<Reader>,
    room: usize,
}

impl Tokenizer {
    pub(crate) fn new(reader: Arc<Reader>, prefix: &str) -> Tokenizer {
        let prefix = reader.offsets(prefix).map_or(0, |tokens| tokens.len());
        let room = reader.max_tokens.saturating_sub(reader.around + prefix).max(1);
        Tokenizer { reader, room }
    }

    /// How many tokens of a passage the model reads at once.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Where the tokens of a text stand in it, in bytes and in order, however long it is.
    pub fn offsets(&self, text: &str) -> Result<Vec<Range<usize>>, Error> {
        self.reader.offsets(text)
    }

    /// Cuts a text into as few pieces of about the same length as the model can read whole, between words where there
    /// are any. Where the model finds nothing to read there is none.
    pub fn windows<'t>(&self, text: &'t str) -> Result<Vec<&'t str>, Error> {
        let tokens = self.offsets(text)?;
        let count = tokens.len().div_ceil(self.room);
        if count <= 1 {
            return Ok(if count == 0 { Vec::new() } else { vec![text] });
        }
        // The rest of a word that is cut may have more tokens than it had in the whole, so some room is kept for it.
        let share = tokens.len().div_ceil(count);
        let mut windows = Vec::with_capacity(count + 1);
        let (mut from, mut first) = (0, 0);
        while tokens.len() - first > self.room {
            let begins_word = |token: &usize| text[..tokens[*token].start].ends_with(char::is_whitespace);
            let most = first + self.room;
            let cut = (first + 1..=first + share).rev().find(begins_word);
            let cut = cut.or_else(|| (first + share..=most).find(begins_word)).unwrap_or(first + share - share / 16);
            windows.push(&text[from..tokens[cut].start]);
            (from, first) = (tokens[cut].start, cut);
        }
        windows.push(&text[from..]);
        Ok(windows)
    }
}

impl Reader {
    pub(crate) fn new(json: &[u8], max_tokens: usize) -> Result<Reader, String> {
        let mut tokenizer =
            tokenizers::Tokenizer::from_bytes(json).map_err(|error| format!("`tokenizer.json`: {error}"))?;
        // Both are settings of whoever exported the model. We cut and pad ourselves, to be able to tell.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| format!("`tokenizer.json`: {error}"))?;
        let around = tokenizer.encode_fast("", true).map_err(|error| error.to_string())?.len();
        if max_tokens <= around {
            return Err(format!("it reads {max_tokens} tokens, {around} of which are its own"));
        }
        Ok(Reader { tokenizer, max_tokens, around })
    }

    pub(crate) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The tokens of a text. `index` is for the error alone.
    pub(crate) fn read(&self, text: &str, index: usize) -> Result<Tokens, Error> {
        if text.trim().is_empty() {
            return Err(Error::EmptyText { index });
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(Error::TextTooLong { index, bytes: text.len(), most: MAX_TEXT_BYTES });
        }
        let fail = |error: tokenizers::Error| Error::Tokenize { index, reason: error.to_string() };
        let room = self.max_tokens - self.around;
        // A book has a million tokens and we want 256 of them: a part that has more than enough will do, as long as it
        // ends between words.
        let mut part = FIRST_PART_BYTES;
        let (mut encoding, is_whole) = loop {
            // Where the last part has too few tokens its words are long ones, and a piece of one is better than none.
            let is_last = part >= LAST_PART_BYTES;
            let end = if is_last { text.floor_char_boundary(part) } else { end_of_words(text, part) };
            let encoding = self.tokenizer.encode_fast(&text[..end], false).map_err(fail)?;
            if is_last || end == text.len() || encoding.len() > room {
                break (encoding, end == text.len());
            }
            part *= 8;
        };
        // Nothing but characters the tokenizer drops, such as control characters.
        if encoding.is_empty() && is_whole {
            return Err(Error::EmptyText { index });
        }
        if encoding.is_empty() {
            let reason = format!("there is nothing to read in its first {LAST_PART_BYTES} bytes");
            return Err(Error::Tokenize { index, reason });
        }
        let truncated = !is_whole || encoding.len() > room;
        encoding.truncate(room, 0, tokenizers::TruncationDirection::Right);
        let whole = self.tokenizer.post_process(encoding, None, true).map_err(fail)?;
        self.check(whole.len(), index)?;
        Ok(Tokens { ids: whole.get_ids().to_vec(), truncated })
    }

    /// Where the tokens of a text of any length stand in it, in bytes.
    pub(crate) fn offsets(&self, text: &str) -> Result<Vec<Range<usize>>, Error> {
        let fail = |error: tokenizers::Error| Error::Tokenize { index: 0, reason: error.to_string() };
        // A guess that spares most growing: five bytes a token is usual for prose.
        let mut offsets = Vec::with_capacity(text.len() / 5);
        let mut start = 0;
        // A tokenizer holds many times the memory of what it reads, so it gets a part at a time, which ends between
        // words.
        while start < text.len() {
            let rest = &text[start..];
            let part = &rest[..end_of_words(rest, FIRST_PART_BYTES)];
            let encoding = self.tokenizer.encode(part, false).map_err(fail)?;
            offsets.extend(encoding.get_offsets().iter().map(|(from, to)| start + from..start + to));
            start += part.len();
        }
        Ok(offsets)
    }

    /// Refuses a number of tokens the model cannot be run with. A tokenizer may double a text or leave nothing of it.
    pub(crate) fn check(&self, tokens: usize, index: usize) -> Result<(), Error> {
        if (1..=self.max_tokens).contains(&tokens) {
            return Ok(());
        }
        Err(Error::Tokenize { index, reason: format!("there are {tokens}; the model reads 1 to {}", self.max_tokens) })
    }
}

/// The end of the last word within the first `bytes`; of the last character, in a text without spaces.
fn end_of_words(text: &str, bytes: usize) -> usize {
    if text.len() <= bytes {
        return text.len();
    }
    let part = &text[..text.floor_char_boundary(bytes)];
    part.rfind(char::is_whitespace).filter(|end| *end > 0).unwrap_or(part.len())
}

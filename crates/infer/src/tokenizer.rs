//! Tokenizer: text to token IDs.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;

/// Maximum text length. Models read far less; this bounds the tokenization time.
pub const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// Length of the prefix that is tokenized first: enough for any model, and cheap.
const FIRST_PART_BYTES: usize = 16 * 1024;

/// Maximum length of the tokenized prefix, for texts that are nearly empty or have no spaces.
const LAST_PART_BYTES: usize = 1024 * 1024;

/// Token IDs of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizedText {
    pub ids: Vec<u32>,
    /// The text exceeded the input limit; its end does not contribute to the vector.
    pub truncated: bool,
}

/// A tokenizer with the input limit of its model.
#[derive(Debug)]
pub(crate) struct TruncatingTokenizer {
    tokenizer: tokenizers::Tokenizer,
    max_tokens: usize,
    /// Number of special tokens around a text, such as `[CLS]` and `[SEP]`.
    special_tokens: usize,
}

/// Token offsets for chunking. Cheap to clone, and usable while the model runs.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    reader: Arc<TruncatingTokenizer>,
    max_passage_tokens: usize,
}

impl Tokenizer {
    pub(crate) fn new(reader: Arc<TruncatingTokenizer>, prefix: &str) -> Tokenizer {
        let prefix = reader.offsets(prefix).map_or(0, |tokens| tokens.len());
        let room = reader.max_tokens.saturating_sub(reader.special_tokens + prefix).max(1);
        Tokenizer { reader, max_passage_tokens: room }
    }

    /// Maximum number of tokens of a passage.
    pub fn max_passage_tokens(&self) -> usize {
        self.max_passage_tokens
    }

    /// Byte ranges of the tokens of a text, in order, without a length limit.
    pub fn offsets(&self, text: &str) -> Result<Vec<Range<usize>>, Error> {
        self.reader.offsets(text)
    }

    /// Splits a text into the smallest number of windows of about equal length that fit the model, at word boundaries
    /// where possible. Empty if the text has no tokens.
    pub fn windows<'t>(&self, text: &'t str) -> Result<Vec<&'t str>, Error> {
        let tokens = self.offsets(text)?;
        let count = tokens.len().div_ceil(self.max_passage_tokens);
        if count <= 1 {
            return Ok(if count == 0 { Vec::new() } else { vec![text] });
        }
        // The rest of a split word may have more tokens than before, so some room is reserved for it.
        let share = tokens.len().div_ceil(count);
        let mut windows = Vec::with_capacity(count + 1);
        let (mut from, mut first) = (0, 0);
        while tokens.len() - first > self.max_passage_tokens {
            let begins_word = |token: &usize| text[..tokens[*token].start].ends_with(char::is_whitespace);
            let most = first + self.max_passage_tokens;
            let cut = (first + 1..=first + share).rev().find(begins_word);
            let cut = cut.or_else(|| (first + share..=most).find(begins_word)).unwrap_or(first + share - share / 16);
            windows.push(&text[from..tokens[cut].start]);
            (from, first) = (tokens[cut].start, cut);
        }
        windows.push(&text[from..]);
        Ok(windows)
    }
}

impl TruncatingTokenizer {
    pub(crate) fn new(json: &[u8], max_tokens: usize) -> Result<TruncatingTokenizer, String> {
        let mut tokenizer =
            tokenizers::Tokenizer::from_bytes(json).map_err(|error| format!("`tokenizer.json`: {error}"))?;
        // The exporter sets both. We truncate and pad ourselves, so that truncation can be reported.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| format!("`tokenizer.json`: {error}"))?;
        let around = tokenizer.encode_fast("", true).map_err(|error| error.to_string())?.len();
        if max_tokens <= around {
            return Err(format!(
                "its input length of {max_tokens} tokens leaves no room after {around} special tokens"
            ));
        }
        Ok(TruncatingTokenizer { tokenizer, max_tokens, special_tokens: around })
    }

    pub(crate) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Tokenizes a text. `index` is only used in the error.
    pub(crate) fn tokenize(&self, text: &str, index: usize) -> Result<TokenizedText, Error> {
        if text.trim().is_empty() {
            return Err(Error::EmptyText { index });
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(Error::TextTooLong { index, bytes: text.len(), most: MAX_TEXT_BYTES });
        }
        let fail = |error: tokenizers::Error| Error::Tokenize { index, reason: error.to_string() };
        let room = self.max_tokens - self.special_tokens;
        // A book has a million tokens, and we need 256: a prefix with more than enough tokens is sufficient if it ends
        // at a word boundary.
        let mut part = FIRST_PART_BYTES;
        let (mut encoding, is_whole) = loop {
            // If the longest prefix has too few tokens, its words are long, and a part of a word is better than none.
            let is_last = part >= LAST_PART_BYTES;
            let end = if is_last { text.floor_char_boundary(part) } else { last_word_end(text, part) };
            let encoding = self.tokenizer.encode_fast(&text[..end], false).map_err(fail)?;
            if is_last || end == text.len() || encoding.len() > room {
                break (encoding, end == text.len());
            }
            part *= 8;
        };
        // The text has only characters that the tokenizer drops, such as control characters.
        if encoding.is_empty() && is_whole {
            return Err(Error::EmptyText { index });
        }
        if encoding.is_empty() {
            let reason = format!("the first {LAST_PART_BYTES} bytes have no tokens");
            return Err(Error::Tokenize { index, reason });
        }
        let truncated = !is_whole || encoding.len() > room;
        encoding.truncate(room, 0, tokenizers::TruncationDirection::Right);
        let whole = self.tokenizer.post_process(encoding, None, true).map_err(fail)?;
        self.check(whole.len(), index)?;
        Ok(TokenizedText { ids: whole.get_ids().to_vec(), truncated })
    }

    /// Byte ranges of the tokens of a text, without a length limit.
    pub(crate) fn offsets(&self, text: &str) -> Result<Vec<Range<usize>>, Error> {
        let fail = |error: tokenizers::Error| Error::Tokenize { index: 0, reason: error.to_string() };
        // Capacity estimate that avoids most reallocations: prose has about five bytes per token.
        let mut offsets = Vec::with_capacity(text.len() / 5);
        let mut start = 0;
        // A tokenizer needs many times the memory of its input, so it gets one part at a time, split at word
        // boundaries.
        while start < text.len() {
            let rest = &text[start..];
            let part = &rest[..last_word_end(rest, FIRST_PART_BYTES)];
            let encoding = self.tokenizer.encode(part, false).map_err(fail)?;
            offsets.extend(encoding.get_offsets().iter().map(|(from, to)| start + from..start + to));
            start += part.len();
        }
        Ok(offsets)
    }

    /// Rejects a token count that the model does not support. A tokenizer may double a text or drop all of it.
    pub(crate) fn check(&self, tokens: usize, index: usize) -> Result<(), Error> {
        if (1..=self.max_tokens).contains(&tokens) {
            return Ok(());
        }
        Err(Error::Tokenize {
            index,
            reason: format!("{tokens} tokens, but the model's limit is 1 to {}", self.max_tokens),
        })
    }
}

/// End of the last word within the first `bytes`; end of the last character if there is no space.
fn last_word_end(text: &str, bytes: usize) -> usize {
    if text.len() <= bytes {
        return text.len();
    }
    let part = &text[..text.floor_char_boundary(bytes)];
    part.rfind(char::is_whitespace).filter(|end| *end > 0).unwrap_or(part.len())
}

//! HTML parsing with limits on tree depth and size.
//!
//! The parser searches its stack of open elements at nearly every tag, so a page nested a million levels deep takes
//! hours. This module therefore drops tags that would exceed the maximum depth and inserts a line break instead, which
//! keeps the words and their separation. It also bounds the depth for later tree traversals.

use std::cell::{Cell, RefCell};

use dom_query::{Document, NodeId};
use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    EndTag, StartTag, Tag, TagToken, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{Tracer, TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, LocalName, TokenizerResult, local_name};

use super::attributes;
use crate::{Error, Limits};

/// Maximum nodes. A node takes about 200 bytes, and a page of a book's length has a few ten thousand.
pub(super) const MAX_NODES: usize = 1_000_000;

/// Parses a page. Scripting counts as enabled, so the content of `noscript` is not text.
pub(super) fn parse(html: &str, limits: &Limits) -> Result<Document, Error> {
    attributes::check(html)?;
    let options = TreeBuilderOpts { scripting_enabled: true, ..TreeBuilderOpts::default() };
    let guard = TokenFilter {
        builder: TreeBuilder::new(Document::default(), options),
        depth: limits.depth,
        open: Cell::new(0),
        left_out: Cell::new(0),
        parted: Cell::new(false),
        full: Cell::new(false),
        unread: Cell::new(false),
    };
    let tokenizer = Tokenizer::new(guard, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    // The tokenizer returns where a browser would run a script or change the encoding.
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    tokenizer.end();
    if tokenizer.sink.full.get() {
        return Err(Error::TooMuch { what: "elements", most: MAX_NODES as u64 });
    }
    Ok(tokenizer.sink.builder.sink)
}

/// Filters tokens between the tokenizer and the tree builder.
struct TokenFilter {
    builder: TreeBuilder<NodeId, Document>,
    depth: usize,
    /// Upper bound on the number of open elements: every start tag since the last count adds one. End tags do not
    /// subtract, because an unmatched end tag closes no element.
    open: Cell<usize>,
    /// Number of dropped start tags with a pending end tag, which is dropped too.
    left_out: Cell<usize>,
    /// A line break already replaces the dropped tags at this position.
    parted: Cell<bool>,
    full: Cell<bool>,
    /// Inside an element with unused text.
    unread: Cell<bool>,
}

impl TokenSink for TokenFilter {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<NodeId> {
        match token {
            // Later stages do not use them, and a hostile page has millions.
            Token::ParseError(_) | Token::CommentToken(_) => TokenSinkResult::Continue,
            Token::CharacterTokens(_) if self.unread.get() => TokenSinkResult::Continue,
            TagToken(tag) if self.full.get() && tag.kind == StartTag => TokenSinkResult::Continue,
            TagToken(tag) => self.tag(tag, line),
            token => {
                self.parted.set(false);
                self.builder.process_token(token, line)
            }
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl TokenFilter {
    fn tag(&self, tag: Tag, line: u64) -> TokenSinkResult<NodeId> {
        // In SVG and MathML these are ordinary element names.
        if is_leaf(&tag.name) && !self.adjusted_current_node_present_but_not_in_html_namespace() {
            return self.pass(tag, line);
        }
        if tag.kind == EndTag {
            if let Some(left) = self.left_out.get().checked_sub(1) {
                self.left_out.set(left);
                return TokenSinkResult::Continue;
            }
            return self.pass(tag, line);
        }
        if self.left_out.get() == 0 && !self.is_deep() {
            self.open.set(self.open.get() + 1);
            return self.pass(tag, line);
        }
        self.left_out.set(self.left_out.get() + 1);
        if self.parted.replace(true) {
            return TokenSinkResult::Continue;
        }
        let line_break = Tag { name: local_name!("br"), attrs: Vec::new(), self_closing: false, ..tag };
        self.pass(line_break, line)
    }

    fn pass(&self, tag: Tag, line: u64) -> TokenSinkResult<NodeId> {
        self.full.set(self.builder.sink.tree.len() > MAX_NODES);
        let unread = is_unread(&tag);
        let result = self.builder.process_token(TagToken(tag), line);
        // Raw text ends at the next tag of any kind; elsewhere, as in SVG, these are ordinary elements.
        self.unread.set(unread && matches!(result, TokenSinkResult::RawData(_)));
        result
    }

    fn is_deep(&self) -> bool {
        if self.open.get() >= self.depth {
            self.open.set(self.open_elements());
        }
        self.open.get() >= self.depth
    }

    /// Number of elements that the parser has open or would reopen around the next text. The tree itself is not
    /// reliable for this: misplaced content in a table moves before the table, so the last branch is not always the
    /// parser's position.
    fn open_elements(&self) -> usize {
        let held = HandleCollector::default();
        self.builder.trace_handles(&held);
        let mut nodes = held.0.into_inner();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

#[derive(Default)]
struct HandleCollector(RefCell<Vec<NodeId>>);

impl Tracer for HandleCollector {
    type Handle = NodeId;

    fn trace_handle(&self, node: &NodeId) {
        self.0.borrow_mut().push(*node);
    }
}

/// Whether to drop the text of an element. Scripts and styles are half of many pages. JSON scripts describe the page
/// and are data.
fn is_unread(tag: &Tag) -> bool {
    let is_data = |attribute: &Attribute| &*attribute.name.local == "type" && attribute.value.contains("json");
    match tag.name {
        local_name!("script") => !tag.attrs.iter().any(is_data),
        local_name!("style") | local_name!("noscript") | local_name!("iframe") => true,
        _ => false,
    }
}

/// Whether an element never has child elements, or has content that the tokenizer reads in a special mode.
fn is_leaf(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("br")
            | local_name!("img")
            | local_name!("input")
            | local_name!("meta")
            | local_name!("link")
            | local_name!("hr")
            | local_name!("wbr")
            | local_name!("area")
            | local_name!("base")
            | local_name!("col")
            | local_name!("embed")
            | local_name!("source")
            | local_name!("track")
            | local_name!("param")
            | local_name!("script")
            | local_name!("style")
            | local_name!("title")
            | local_name!("textarea")
            | local_name!("noscript")
            | local_name!("iframe")
            | local_name!("xmp")
            | local_name!("noembed")
            | local_name!("noframes")
            | local_name!("plaintext")
    )
}

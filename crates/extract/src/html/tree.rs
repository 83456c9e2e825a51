//! The tree of a page, with bounds on how deep and how large it may grow.
//!
//! The parser looks up and down its stack of open elements at nearly every tag, so a page nested a million times takes it
//! hours. Tags that would go too deep are therefore kept from it, and a line break is put in their place: the words stay,
//! and stay apart. That also lets everything that walks the tree later do so without care.

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

/// A node takes some 200 bytes, and a page of a book's length has a few ten thousand.
pub(super) const NODES: usize = 1_000_000;

/// Parses a page. Scripts count as running, so that what stands in `noscript` is no text.
pub(super) fn parse(html: &str, limits: &Limits) -> Result<Document, Error> {
    attributes::check(html)?;
    let options = TreeBuilderOpts { scripting_enabled: true, ..TreeBuilderOpts::default() };
    let guard = Guard {
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
    // Control comes back where a browser would run a script or change the encoding.
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    tokenizer.end();
    if tokenizer.sink.full.get() {
        return Err(Error::TooMuch { what: "elements", most: NODES as u64 });
    }
    Ok(tokenizer.sink.builder.sink)
}

/// Stands between the tokens and the tree.
struct Guard {
    builder: TreeBuilder<NodeId, Document>,
    depth: usize,
    /// No fewer than the elements that are open: each start tag since they were last counted is taken for one more. End
    /// tags are not to be trusted, since those that match nothing close nothing.
    open: Cell<usize>,
    /// Start tags kept from the parser whose end tags are to be kept from it too.
    left_out: Cell<usize>,
    /// The place of those tags has its line break already.
    parted: Cell<bool>,
    full: Cell<bool>,
    /// Inside an element whose text nobody will read.
    unread: Cell<bool>,
}

impl TokenSink for Guard {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<NodeId> {
        match token {
            // Nothing reads them, and a hostile page has millions.
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

impl Guard {
    fn tag(&self, tag: Tag, line: u64) -> TokenSinkResult<NodeId> {
        // In SVG and formulas these are names like any others.
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
        self.full.set(self.builder.sink.tree.len() > NODES);
        let unread = is_unread(&tag);
        let result = self.builder.process_token(TagToken(tag), line);
        // Raw text ends with the next tag, whichever it is; elsewhere, as in SVG, these elements are like any others.
        self.unread.set(unread && matches!(result, TokenSinkResult::RawData(_)));
        result
    }

    fn is_deep(&self) -> bool {
        if self.open.get() >= self.depth {
            self.open.set(self.held());
        }
        self.open.get() >= self.depth
    }

    /// How many elements the parser holds open, or would open again around the next text. The tree itself does not tell:
    /// what is misplaced in a table goes before it, so the last branch is not always where the parser stands.
    fn held(&self) -> usize {
        let held = Held::default();
        self.builder.trace_handles(&held);
        let mut nodes = held.0.into_inner();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

#[derive(Default)]
struct Held(RefCell<Vec<NodeId>>);

impl Tracer for Held {
    type Handle = NodeId;

    fn trace_handle(&self, node: &NodeId) {
        self.0.borrow_mut().push(*node);
    }
}

/// Scripts and the like are half of many pages. Those that describe the page are data.
fn is_unread(tag: &Tag) -> bool {
    let is_data = |attribute: &Attribute| &*attribute.name.local == "type" && attribute.value.contains("json");
    match tag.name {
        local_name!("script") => !tag.attrs.iter().any(is_data),
        local_name!("style") | local_name!("noscript") | local_name!("iframe") => true,
        _ => false,
    }
}

/// Elements that never hold others, and those whose content the tokenizer reads in a way of its own.
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

//! YAML parser (YAML 1.2 core schema).
//!
//! Builds the tree from parser events instead of using the library's loader, whose recursion is unbounded: a few
//! kilobytes of `- - - -` overflow the stack.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::Number;

use super::super::diagnostic::{Diagnostic, KeyPath, Origin, Segment};
use super::super::spanned_value::{SpannedEntry, SpannedMap, SpannedValue, ValueData, to_integer_if_exact};
use super::{MAX_DEPTH, MAX_FILE_BYTES, Position, syntax_error};

pub(super) fn parse(text: &str, path: &Arc<Path>) -> Result<SpannedValue, Vec<Diagnostic>> {
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder::new(path);
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, span)) => builder.handle_event(event, span.start),
            Err(error) => Err(builder.diagnostic(*error.marker(), format!("is not valid YAML: {}", error.info()))),
        };
        if let Err(problem) = step {
            builder.diagnostics.push(problem);
            break;
        }
    }
    let start = Origin::file(path, Position { line: 1, column: 1 });
    match builder.diagnostics {
        problems if !problems.is_empty() => Err(problems),
        _ => Ok(builder.root.unwrap_or_else(|| SpannedValue::empty(start))),
    }
}

struct Builder<'a> {
    path: &'a Arc<Path>,
    /// Open containers, outermost first; at most `MAX_DEPTH`.
    open: Vec<OpenNode>,
    root: Option<SpannedValue>,
    anchors: HashMap<usize, SpannedValue>,
    /// Remaining bytes that aliases may copy.
    alias_budget: usize,
    diagnostics: Vec<Diagnostic>,
}

struct OpenNode {
    content: OpenContent,
    origin: Origin,
    anchor: usize,
}

enum OpenContent {
    List(Vec<SpannedValue>),
    /// The key is set while its value is pending.
    Map(SpannedMap, Option<(String, Origin)>),
}

impl<'a> Builder<'a> {
    fn new(path: &'a Arc<Path>) -> Self {
        Self {
            path,
            open: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            alias_budget: MAX_FILE_BYTES,
            diagnostics: Vec::new(),
        }
    }

    fn handle_event(&mut self, event: Event<'_>, at: Marker) -> Result<(), Diagnostic> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(self.diagnostic(at, "contains a second YAML document; only one per file is supported"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                if self.awaits_key() {
                    return self.key(text.into_owned(), at);
                }
                let data = scalar(&text, style, tag.as_deref()).map_err(|message| self.diagnostic(at, message))?;
                self.attach(SpannedValue { data, origin: self.origin(at) }, anchor);
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => self.start(OpenContent::List(Vec::new()), anchor, tag.as_deref(), at),
            Event::MappingStart(anchor, tag) => {
                self.start(OpenContent::Map(SpannedMap::new(), None), anchor, tag.as_deref(), at)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(frame) = self.open.pop() {
                    let data = match frame.content {
                        OpenContent::List(items) => ValueData::List(items),
                        OpenContent::Map(entries, _) => ValueData::Map(entries),
                    };
                    self.attach(SpannedValue { data, origin: frame.origin }, frame.anchor);
                }
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            _ => Ok(()),
        }
    }

    fn start(&mut self, content: OpenContent, anchor: usize, tag: Option<&Tag>, at: Marker) -> Result<(), Diagnostic> {
        if self.awaits_key() {
            return Err(self.diagnostic(at, "has a list or mapping as a key; keys must be plain scalars"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.diagnostic(at, format!("is nested too deeply (maximum {MAX_DEPTH} levels)")));
        }
        if tag.is_some_and(|tag| !tag.is_yaml_core_schema()) {
            return Err(self.diagnostic(at, UNKNOWN_TAG));
        }
        self.open.push(OpenNode { content, origin: self.origin(at), anchor });
        Ok(())
    }

    fn key(&mut self, key: String, at: Marker) -> Result<(), Diagnostic> {
        let origin = self.origin(at);
        let path = self.open_path().key(&key);
        if let Some(OpenNode { content: OpenContent::Map(entries, awaited), .. }) = self.open.last_mut() {
            if entries.contains_key(&key) {
                self.diagnostics.push(Diagnostic::at(origin.clone(), path, "duplicate key"));
            }
            *awaited = Some((key, origin));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Marker) -> Result<(), Diagnostic> {
        if self.awaits_key() {
            return Err(self.diagnostic(at, "has an alias as a key; keys must be plain scalars"));
        }
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(self.diagnostic(at, "has a recursive alias"));
        };
        let (size, height) = extent(&node);
        if self.open.len() + height > MAX_DEPTH {
            return Err(self.diagnostic(at, format!("is nested too deeply by an alias (maximum {MAX_DEPTH} levels)")));
        }
        self.alias_budget = self
            .alias_budget
            .checked_sub(size)
            .ok_or_else(|| self.diagnostic(at, "expands too much through aliases"))?;
        self.attach(SpannedValue { origin: self.origin(at), ..node }, 0);
        Ok(())
    }

    fn attach(&mut self, node: SpannedValue, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|frame| &mut frame.content) {
            Some(OpenContent::List(items)) => items.push(node),
            Some(OpenContent::Map(entries, awaited)) => {
                if let Some((name, key)) = awaited.take() {
                    entries.insert(name, SpannedEntry { key, node });
                }
            }
            None => self.root = Some(node),
        }
    }

    /// Path of the innermost open container.
    fn open_path(&self) -> KeyPath {
        let segment = |frame: &OpenNode| match &frame.content {
            OpenContent::List(items) => Some(Segment::Index(items.len())),
            OpenContent::Map(_, awaited) => awaited.as_ref().map(|(key, _)| Segment::Key(key.clone())),
        };
        KeyPath(self.open.iter().filter_map(segment).collect())
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenNode { content: OpenContent::Map(_, None), .. }))
    }

    fn origin(&self, at: Marker) -> Origin {
        Origin::file(self.path, position(at))
    }

    fn diagnostic(&self, at: Marker, message: impl Into<String>) -> Diagnostic {
        syntax_error(self.path, position(at), message)
    }
}

const UNKNOWN_TAG: &str = "has an unsupported tag; remove the word that begins with `!`";

fn position(at: Marker) -> Position {
    Position { line: at.line(), column: at.col() + 1 }
}

/// Text size and height of a subtree.
fn extent(node: &SpannedValue) -> (usize, usize) {
    let join = |(size, height): (usize, usize), (more, deeper): (usize, usize)| (size + more, height.max(deeper));
    match &node.data {
        ValueData::String(text) => (1 + text.len(), 0),
        ValueData::List(items) => {
            let (size, height) = items.iter().map(extent).fold((1, 0), join);
            (size, height + 1)
        }
        ValueData::Map(entries) => {
            let sizes = entries.iter().map(|(key, entry)| join((key.len(), 0), extent(&entry.node)));
            let (size, height) = sizes.fold((1, 0), join);
            (size, height + 1)
        }
        _ => (1, 0),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<ValueData, &'static str> {
    const TAG_MISMATCH: &str = "has a value that does not match its tag";
    let string = || Ok(ValueData::text(text));
    match tag {
        None if style == ScalarStyle::Plain => plain(text),
        None => string(),
        Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => string(),
        Some(tag) if tag.is_yaml_core_schema() => match (tag.suffix.as_str(), plain(text)?) {
            ("str", _) => string(),
            ("null", data @ ValueData::Null) | ("bool", data @ ValueData::Bool(_)) => Ok(data),
            ("int" | "float", data @ ValueData::Number(_)) => Ok(data),
            ("null" | "bool" | "int" | "float", _) => Err(TAG_MISMATCH),
            _ => Err(UNKNOWN_TAG),
        },
        Some(_) => Err(UNKNOWN_TAG),
    }
}

/// Type of a plain scalar in YAML 1.2: `no` and `on` are strings, not booleans.
fn plain(text: &str) -> Result<ValueData, &'static str> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => ValueData::Null,
        "true" | "True" | "TRUE" => ValueData::Bool(true),
        "false" | "False" | "FALSE" => ValueData::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "-.inf" | ".nan" | ".NaN" | ".NAN" => {
            return Err("is not a finite number");
        }
        _ => match number(text) {
            Some(number) => ValueData::Number(number),
            None => ValueData::text(text),
        },
    })
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    // Rust also parses `inf` and `nan`, which are strings in YAML.
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let float: f64 = (numeric && digits).then(|| text.parse().ok())??;
    Number::from_f64(float).map(to_integer_if_exact)
}

//! Classification of HTML elements.

use dom_query::{Document, Element, NodeData, NodeId};
use html5ever::{LocalName, local_name};

use super::dom_to_blocks::in_one_line;

/// How an element contributes to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// Ignored.
    Ignored,
    /// Inline.
    Inline,
    /// Inline too.
    Link,
    /// A block.
    Block,
    Break,
    Picture,
    Input,
    Heading(u8),
    List,
    Item,
    /// The definition of a term: an item below it.
    Definition,
    Caption,
    Code,
    Field,
    Figure,
    Table,
    Head,
    Row,
    Cell {
        title: bool,
    },
}

pub(super) fn element_kind(name: &LocalName) -> ElementKind {
    match &**name {
        "head" | "script" | "style" | "template" | "noscript" | "iframe" | "noembed" | "noframes" | "audio"
        | "video" | "canvas" | "datalist" | "rp" | "annotation" | "annotation-xml" => ElementKind::Ignored,
        "a" => ElementKind::Link,
        "br" => ElementKind::Break,
        "img" | "area" => ElementKind::Picture,
        "input" => ElementKind::Input,
        "h1" => ElementKind::Heading(1),
        "h2" => ElementKind::Heading(2),
        "h3" => ElementKind::Heading(3),
        "h4" => ElementKind::Heading(4),
        "h5" => ElementKind::Heading(5),
        "h6" => ElementKind::Heading(6),
        "ul" | "ol" | "dl" | "menu" | "dir" => ElementKind::List,
        "li" | "dt" => ElementKind::Item,
        "dd" => ElementKind::Definition,
        "figcaption" | "caption" => ElementKind::Caption,
        "pre" | "listing" | "xmp" | "plaintext" => ElementKind::Code,
        "select" | "textarea" => ElementKind::Field,
        "figure" => ElementKind::Figure,
        "table" => ElementKind::Table,
        "thead" => ElementKind::Head,
        "tr" => ElementKind::Row,
        "td" => ElementKind::Cell { title: false },
        "th" => ElementKind::Cell { title: true },
        "html" | "body" | "p" | "div" | "section" | "article" | "main" | "aside" | "nav" | "header" | "footer"
        | "hgroup" | "blockquote" | "address" | "center" | "details" | "summary" | "dialog" | "form" | "fieldset"
        | "legend" | "optgroup" | "option" | "tbody" | "tfoot" | "hr" | "search" | "button" | "frameset"
        | "foreignObject" => ElementKind::Block,
        _ => ElementKind::Inline,
    }
}

/// Whether attributes of the element itself hide it.
pub(super) fn is_hidden(element: &Element) -> bool {
    element.attrs.iter().any(|attribute| match &*attribute.name.local {
        "hidden" => !attribute.value.eq_ignore_ascii_case("until-found"),
        "style" => {
            let style = attribute.value.to_ascii_lowercase();
            style.contains("display") && style.split_ascii_whitespace().collect::<String>().contains("display:none")
        }
        _ => false,
    })
}

/// The alternative text of an image, unless it is only a file name.
pub(super) fn description(element: &Element) -> Option<String> {
    let text = attribute(element, "alt").filter(|text| !text.is_empty())?;
    let lower = text.to_ascii_lowercase();
    let is_file = [".jpg", ".jpeg", ".png", ".gif", ".svg", ".webp"].iter().any(|end| lower.ends_with(end));
    (!is_file).then_some(text)
}

/// The value of a text input field.
pub(super) fn value(element: &Element) -> Option<String> {
    let kind = attribute(element, "type").unwrap_or_default().to_ascii_lowercase();
    let is_text = matches!(
        kind.as_str(),
        "" | "text" | "search" | "email" | "tel" | "url" | "number" | "date" | "time" | "month"
    );
    attribute(element, "value").filter(|value| is_text && !value.is_empty())
}

pub(super) fn attribute(element: &Element, name: &str) -> Option<String> {
    let found = element.attrs.iter().find(|attribute| &*attribute.name.local == name);
    found.map(|attribute| in_one_line(&attribute.value))
}

pub(super) fn number(element: &Element, name: &str) -> usize {
    attribute(element, name).and_then(|value| value.parse().ok()).unwrap_or(1)
}

/// Whether an element of this name is inside.
pub(super) fn contains_element(document: &Document, id: NodeId, name: &LocalName) -> bool {
    any_descendant(document, id, |element| element.name.local == *name)
}

/// Whether a table is used only for layout: it contains other tables, headings or code, or has a single column.
pub(super) fn is_layout(document: &Document, id: NodeId, element: &Element) -> bool {
    if attribute(element, "role").is_some_and(|role| role == "presentation" || role == "none") {
        return true;
    }
    let (mut cells, mut columns) = (0, 0);
    let holds_blocks = any_descendant(document, id, |element| {
        match element.name.local {
            local_name!("tr") => cells = 0,
            local_name!("td") | local_name!("th") => {
                cells += 1;
                columns = columns.max(cells);
            }
            _ => {}
        }
        matches!(element_kind(&element.name.local), ElementKind::Table | ElementKind::Heading(_) | ElementKind::Code)
    });
    holds_blocks || columns < 2
}

/// Whether any descendant element matches. Stops at the first match.
fn any_descendant(document: &Document, id: NodeId, mut is_wanted: impl FnMut(&Element) -> bool) -> bool {
    document.tree.descendant_ids_of_it(&id).any(|inner| {
        document.tree.query_node_or(&inner, false, |node| match &node.data {
            NodeData::Element(element) => is_wanted(element),
            _ => false,
        })
    })
}

//! Metadata from the head of an HTML page.

use dom_query::Document;
use dom_smoothie::Readability;

use super::dom_to_blocks::in_one_line;
use crate::Metadata;

/// The text of the `title` element.
pub(super) fn title(document: &Document) -> Option<String> {
    let head = document.tree.head()?;
    let title = head.children_it(false).find(|node| node.query_or(false, |node| is_title(&node.data)))?;
    filled(title.text().to_string())
}

/// Reads the `meta` elements and JSON-LD of the head. The title is left unchanged.
pub(super) fn of(reader: &Readability, title: Option<&str>) -> Metadata {
    let found = reader.get_article_metadata(reader.parse_json_ld());
    let root = reader.doc.tree.root().first_element_child();
    let language = root.and_then(|html| html.attr("lang").or_else(|| html.attr("xml:lang")));
    let author = meta(&reader.doc, &["author", "article:author"]).filter(|author| !author.contains("://"));
    let created = ["article:published_time", "date", "dc.date", "dcterms.created", "datePublished"];
    let modified = ["article:modified_time", "last-modified", "dcterms.modified", "dateModified"];
    Metadata {
        title: title.map(str::to_owned).or_else(|| filled(found.title)),
        author: author.or_else(|| found.byline.and_then(filled)),
        subject: meta(&reader.doc, &["description"]).or_else(|| found.excerpt.and_then(filled)),
        language: language.and_then(|language| filled(language.to_string())),
        created: found.published_time.and_then(filled).or_else(|| meta(&reader.doc, &created)),
        modified: found.modified_time.and_then(filled).or_else(|| meta(&reader.doc, &modified)),
        ..Metadata::default()
    }
}

/// The content of the first `meta` element with one of these names.
fn meta(document: &Document, names: &[&str]) -> Option<String> {
    let head = document.tree.head()?;
    head.children_it(false).find_map(|node| {
        let name = ["name", "property", "itemprop", "http-equiv"].iter().find_map(|key| node.attr(key))?;
        let is_wanted = names.iter().any(|wanted| wanted.eq_ignore_ascii_case(&name));
        node.attr("content").filter(|_| is_wanted).and_then(|content| filled(content.to_string()))
    })
}

fn is_title(data: &dom_query::NodeData) -> bool {
    matches!(data, dom_query::NodeData::Element(element) if &*element.name.local == "title")
}

fn filled(text: String) -> Option<String> {
    let text = in_one_line(&text);
    (!text.is_empty()).then_some(text)
}

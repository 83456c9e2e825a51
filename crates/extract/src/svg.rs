//! SVG images: the text elements, and the rendered image for OCR.
//!
//! Parsed as XML in document order, because SVG renderers convert text to outlines. Content that is never drawn is
//! omitted: styles, scripts, `display="none"`, and all branches of a `switch` except the first, since they contain the
//! same text in other languages.

mod doctype;

use std::collections::HashSet;
use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg;
use roxmltree::{Node, ParsingOptions};

use crate::{
    Block, BlockKind, Error, ExtractionMethod, Format, Limits, Metadata, Options, Page, Raster, Sink, Summary,
    encoding, html::attributes, image, sniff,
};

/// Maximum number of elements.
const MAX_NODES: u32 = 1_000_000;
/// Maximum number of namespace prefixes in an image. At each element with a new prefix, the parser compares all earlier
/// ones.
const MAX_PREFIXES: usize = 32;
/// Minimum length of the shorter side of a picture rendered for OCR.
const MIN_RASTER_SIDE: f32 = 1000.0;
/// Number of pixels that is sufficient for legible letters.
const MAX_RASTER_PIXELS: u64 = 4_000_000;
/// Disables filters. The renderer applies this style sheet first, and its first important declaration of a property
/// wins over attributes, `style` attributes and style sheets of the file, however these spell the property.
///
/// A filter recomputes every pixel, with blurs and noise of arbitrary cost, once per element: 6 kB of nested filters
/// take minutes of processor time. Letters are equally legible without filters.
const NO_FILTERS: &str = "* { filter: none !important }";

pub(crate) fn read(bytes: &[u8], options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let text = encoding::decode_xml(bytes);
    let text = doctype::resolve(&text, &options.limits)?;
    let document = parse(&text)?;
    let root = document.root_element();
    let blocks = blocks(root, &options.limits)?;
    let metadata = metadata(root);
    // Letters may be drawn as paths.
    let scanned = blocks.is_empty();
    sink.pages(1);
    sink.page(Page { number: 1, blocks, scanned, ..Page::default() });
    Ok(Summary { metadata, method: ExtractionMethod::ImageAnalysis, warnings: Vec::new() })
}

/// Renders the image on white, large enough that small letters are legible. External files are not opened, and text
/// elements are not rendered: there are no fonts, and [`read`] extracts them. Filters are disabled, see [`NO_FILTERS`].
pub fn svg_raster(bytes: &[u8], limits: &Limits) -> Result<Raster, Error> {
    let text = encoding::decode_xml(bytes);
    let text = doctype::resolve(&text, limits)?;
    let document = parse(&text)?;
    // The renderer recurses into groups.
    if depth(document.root_element()) > limits.depth {
        return Err(Error::TooMuch { what: "levels of nested elements", most: limits.depth as u64 });
    }
    let options = usvg::Options {
        resources_dir: None,
        style_sheet: Some(NO_FILTERS.to_owned()),
        image_href_resolver: usvg::ImageHrefResolver {
            resolve_data: Box::new(|_, bytes, _| embedded(bytes, limits)),
            resolve_string: Box::new(|_, _| None),
        },
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_xmltree(&document, &options).map_err(|error| Error::Corrupted(error.to_string()))?;
    let size = tree.size();
    let wanted = (MIN_RASTER_SIDE / size.width().min(size.height())).clamp(1.0, 8.0);
    let pixels = limits.pixels.min(MAX_RASTER_PIXELS);
    let most = (pixels as f32 / (size.width() * size.height())).sqrt();
    let scale = wanted.min(most);
    let (width, height) = ((size.width() * scale).floor().max(1.0), (size.height() * scale).floor().max(1.0));
    let too_large = Error::TooMuch { what: "pixels", most: pixels };
    if f64::from(width) * f64::from(height) > pixels as f64 {
        return Err(too_large);
    }
    let mut canvas = Pixmap::new(width as u32, height as u32).ok_or(too_large)?;
    canvas.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut canvas.as_mut());
    let rgb = canvas.data().chunks_exact(4).flat_map(|dot| [dot[0], dot[1], dot[2]]).collect();
    Ok(Raster { width: canvas.width(), height: canvas.height(), rgb })
}

/// An embedded image, unless it is too large.
fn embedded(bytes: Arc<Vec<u8>>, limits: &Limits) -> Option<usvg::ImageKind> {
    let format = sniff(&bytes)?;
    image::size(&bytes, format).filter(|(width, height)| u64::from(*width) * u64::from(*height) <= limits.pixels)?;
    match format {
        Format::Jpg => Some(usvg::ImageKind::JPEG(bytes)),
        Format::Png => Some(usvg::ImageKind::PNG(bytes)),
        _ => None,
    }
}

fn parse(text: &str) -> Result<roxmltree::Document<'_>, Error> {
    attributes::check(text)?;
    let mut prefixes = HashSet::new();
    for after in text.split("xmlns:").skip(1) {
        prefixes.insert(after.split(|letter: char| letter == '=' || letter.is_whitespace()).next());
        if prefixes.len() > MAX_PREFIXES {
            return Err(Error::TooMuch { what: "namespace prefixes", most: MAX_PREFIXES as u64 });
        }
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| match error {
        roxmltree::Error::NodesLimitReached => Error::TooMuch { what: "elements", most: MAX_NODES.into() },
        error => Error::Corrupted(error.to_string()),
    })?;
    if document.root_element().tag_name().name() != "svg" {
        return Err(Error::Corrupted("it contains no drawing".to_owned()));
    }
    Ok(document)
}

/// One block per text, title and description.
fn blocks(root: Node<'_, '_>, limits: &Limits) -> Result<Vec<Block>, Error> {
    let mut blocks = Vec::new();
    let mut characters = 0;
    let mut next = Some(root);
    while let Some(node) = next {
        let kind = match node.tag_name().name() {
            "text" | "flowRoot" => Some(BlockKind::Paragraph),
            "title" | "desc" => Some(BlockKind::Caption),
            // HTML text inside the image.
            "foreignObject" => Some(BlockKind::Paragraph),
            _ => None,
        };
        let (skip, said) = (is_unseen(node), kind.is_some());
        if let Some(kind) = kind.filter(|_| !skip) {
            let text = words(node);
            characters += text.len() as u64;
            if characters > limits.characters {
                return Err(Error::TooMuch { what: "characters", most: limits.characters });
            }
            if !text.is_empty() {
                blocks.push(Block::new(kind, text));
                limits.check_blocks(blocks.len())?;
            }
        }
        next = following(node, root, skip || said);
    }
    Ok(blocks)
}

/// The text of an element. Pieces with separate positions become separate words; pieces that follow each other do not.
fn words(element: Node<'_, '_>) -> String {
    let mut text = String::new();
    let mut next = Some(element);
    while let Some(node) = next {
        let name = node.tag_name().name();
        let skip = node != element && (is_unseen(node) || matches!(name, "title" | "desc"));
        if let Some(piece) = node.text().filter(|_| node.is_text()) {
            text.push_str(piece);
        } else if is_placed(node) {
            text.push(' ');
        }
        next = following(node, element, skip);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_placed(node: Node<'_, '_>) -> bool {
    let name = node.tag_name().name();
    let moved = ["x", "y", "dy"].iter().any(|key| node.has_attribute(*key));
    (name == "tspan" && moved)
        || matches!(name, "textPath" | "flowPara" | "flowDiv" | "p" | "div" | "br" | "li" | "td" | "tr")
}

fn is_unseen(node: Node<'_, '_>) -> bool {
    let name = node.tag_name().name();
    let style = node.attribute("style").unwrap_or_default();
    let hidden = node.attribute("display") == Some("none") || style.replace(' ', "").contains("display:none");
    let other_branch = node.parent().is_some_and(|parent| parent.tag_name().name() == "switch")
        && node.is_element()
        && node.prev_sibling_element().is_some();
    hidden || other_branch || matches!(name, "style" | "script" | "metadata")
}

/// The next node in document order inside `root`.
fn following<'a, 'input>(
    node: Node<'a, 'input>,
    root: Node<'a, 'input>,
    skip_inside: bool,
) -> Option<Node<'a, 'input>> {
    if let Some(child) = node.first_child().filter(|_| !skip_inside) {
        return Some(child);
    }
    let mut node = node;
    while node != root {
        if let Some(sibling) = node.next_sibling() {
            return Some(sibling);
        }
        node = node.parent()?;
    }
    None
}

fn depth(root: Node<'_, '_>) -> usize {
    let (mut deepest, mut depth) = (0, 0_usize);
    let mut node = root;
    loop {
        deepest = deepest.max(depth);
        if let Some(child) = node.first_child() {
            (node, depth) = (child, depth + 1);
            continue;
        }
        while node.next_sibling().is_none() || node == root {
            match node.parent().filter(|_| node != root) {
                Some(parent) => (node, depth) = (parent, depth - 1),
                None => return deepest,
            }
        }
        if let Some(sibling) = node.next_sibling() {
            node = sibling;
        }
    }
}

fn metadata(root: Node<'_, '_>) -> Metadata {
    let child = |name: &str| {
        let found = root.children().find(|child| child.tag_name().name() == name);
        found.map(words).filter(|text| !text.is_empty())
    };
    let (width, height) = size(root).unzip();
    let language = root.attribute("lang").or_else(|| root.attribute(("http://www.w3.org/XML/1998/namespace", "lang")));
    Metadata {
        title: child("title"),
        subject: child("desc"),
        language: language.map(str::to_owned),
        width,
        height,
        ..Metadata::default()
    }
}

/// The `width` and `height` if they are in pixels, else the size of the view box.
fn size(root: Node<'_, '_>) -> Option<(u32, u32)> {
    let dots = |key: &str| root.attribute(key)?.trim().trim_end_matches("px").parse::<f32>().ok();
    let view = || {
        let numbers = root.attribute("viewBox")?.split([' ', ',']).filter(|number| !number.is_empty());
        let numbers: Vec<f32> = numbers.filter_map(|number| number.parse().ok()).collect();
        (numbers.len() == 4).then(|| (numbers[2], numbers[3]))
    };
    let (width, height) = dots("width").zip(dots("height")).or_else(view)?;
    let dots = 1.0..=1e6;
    (dots.contains(&width) && dots.contains(&height)).then_some((width as u32, height as u32))
}

#[cfg(test)]
mod tests;

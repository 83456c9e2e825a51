//! DOCX styles: which ones mark headings, lists, captions and code, and which hide text.

use std::collections::HashMap;

use crate::Error;
use crate::ooxml::Xml;

/// Paragraph and character styles by id, with inherited properties resolved.
#[derive(Debug, Default)]
pub(super) struct Styles {
    paragraphs: HashMap<String, Style>,
    characters: HashMap<String, Style>,
}

/// The effect of a style on a paragraph. `None` inherits from the base style.
#[derive(Debug, Clone, Default)]
pub(super) struct Style {
    pub(super) role: Option<StyleRole>,
    /// The numbering id of its paragraphs; "0" removes an inherited one.
    pub(super) list: Option<String>,
    pub(super) depth: Option<u8>,
    pub(super) depth_by_name: Option<u8>,
    /// Its text is hidden.
    pub(super) hidden: Option<bool>,
    based_on: Option<String>,
    outline: Option<u8>,
}

/// Properties of a text run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) style: Option<String>,
    pub(super) hidden: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StyleRole {
    /// Starts at 1.
    Heading(u8),
    Caption,
    Code,
    /// Explicitly body text, which overrides the base style.
    Body,
}

/// Maximum length of an inheritance chain. Longer chains are cycles.
const MAX_ANCESTORS: usize = 32;

// === impl ===

impl Styles {
    pub(super) fn read(xml: &mut Xml<'_>) -> Result<Styles, Error> {
        let (mut paragraphs, mut characters) = (HashMap::new(), HashMap::new());
        xml.child()?;
        while let Some(tag) = xml.child()? {
            let own = match tag.get("type").as_deref() {
                None | Some("paragraph") => &mut paragraphs,
                Some("character") => &mut characters,
                _ => {
                    xml.skip()?;
                    continue;
                }
            };
            match (tag.name(), tag.get("styleId")) {
                ("style", Some(id)) => drop(own.insert(id.into_owned(), Style::read(xml)?)),
                _ => xml.skip()?,
            }
        }
        Ok(Styles { paragraphs: resolve_styles(&paragraphs), characters: resolve_styles(&characters) })
    }

    /// Whether a character style hides its text; `None` if it does not specify.
    pub(super) fn hides(&self, id: &str) -> Option<bool> {
        self.characters.get(id)?.hidden
    }

    pub(super) fn get(&self, id: &str) -> Style {
        match self.paragraphs.get(id) {
            Some(style) => style.clone(),
            // Documents without style definitions still reference styles by name.
            None => Style { role: role_of(&normalize_name(id)), ..Style::default() },
        }
    }
}

impl Style {
    fn read(xml: &mut Xml<'_>) -> Result<Style, Error> {
        let mut style = Style::default();
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "name" => {
                    let name = normalize_name(&tag.get("val").unwrap_or_default());
                    (style.role, style.depth_by_name) = (role_of(&name), depth_of(&name));
                }
                "basedOn" => style.based_on = tag.get("val").map(|id| id.into_owned()),
                "pPr" => {
                    style.read_paragraph_properties(xml)?;
                    continue;
                }
                "rPr" => {
                    style.hidden = Run::read(xml)?.hidden;
                    continue;
                }
                _ => {}
            }
            xml.skip()?;
        }
        style.role = match (style.role, style.outline) {
            (Some(named), _) => Some(named),
            (None, Some(level)) if level < 9 => Some(StyleRole::Heading(level + 1)),
            (None, Some(_)) => Some(StyleRole::Body),
            (None, None) => None,
        };
        Ok(style)
    }

    fn read_paragraph_properties(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "outlineLvl" => self.outline = tag.number("val"),
                "numPr" => {
                    (self.list, self.depth) = numbering(xml)?;
                    continue;
                }
                _ => {}
            }
            xml.skip()?;
        }
        Ok(())
    }
}

impl Run {
    pub(super) fn read(xml: &mut Xml<'_>) -> Result<Run, Error> {
        let mut run = Run::default();
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "vanish" => run.hidden = Some(tag.is_on()),
                "rStyle" => run.style = tag.get("val").map(|id| id.into_owned()),
                _ => {}
            }
            xml.skip()?;
        }
        Ok(run)
    }
}

/// The numbering id and depth of a paragraph or a style.
pub(super) fn numbering(xml: &mut Xml<'_>) -> Result<(Option<String>, Option<u8>), Error> {
    let (mut list, mut depth) = (None, None);
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "numId" => list = tag.get("val").map(|id| id.into_owned()),
            "ilvl" => depth = tag.number("val"),
            _ => {}
        }
        xml.skip()?;
    }
    Ok((list, depth))
}

fn resolve_styles(own: &HashMap<String, Style>) -> HashMap<String, Style> {
    own.keys().map(|id| (id.clone(), inherit(own, id))).collect()
}

fn inherit(own: &HashMap<String, Style>, id: &str) -> Style {
    let mut style = own[id].clone();
    let mut next = style.based_on.clone();
    for _ in 0..MAX_ANCESTORS {
        let Some(above) = next.and_then(|id| own.get(&id)) else { break };
        style.role = style.role.or(above.role);
        style.list = style.list.take().or_else(|| above.list.clone());
        style.depth = style.depth.or(above.depth);
        style.depth_by_name = style.depth_by_name.or(above.depth_by_name);
        style.hidden = style.hidden.or(above.hidden);
        next = above.based_on.clone();
    }
    style
}

/// Normalizes a style name: lowercase, without spaces, hyphens and underscores.
fn normalize_name(name: &str) -> String {
    name.to_lowercase().chars().filter(|letter| !matches!(letter, ' ' | '-' | '_')).collect()
}

/// The role of a built-in style, by its name. Word processors write these names in English in every language.
fn role_of(name: &str) -> Option<StyleRole> {
    if let Some(level) = name.strip_prefix("heading").and_then(|rest| rest.parse().ok()) {
        return (1..=9).contains(&level).then_some(StyleRole::Heading(level));
    }
    let code =
        ["sourcecode", "htmlpreformatted", "preformattedtext", "macrotext", "codeblock", "codelisting", "listing"];
    match name {
        "title" => Some(StyleRole::Heading(1)),
        "caption" => Some(StyleRole::Caption),
        "code" => Some(StyleRole::Code),
        name if code.contains(&name) => Some(StyleRole::Code),
        _ => None,
    }
}

/// `List Bullet 2` and similar styles have a separate numbering for each depth and use its outermost level.
fn depth_of(name: &str) -> Option<u8> {
    let rest = name.strip_prefix("list")?;
    let rest = rest.strip_prefix("bullet").or_else(|| rest.strip_prefix("number")).unwrap_or(rest);
    rest.parse().ok().and_then(|level: u8| level.checked_sub(1)).filter(|depth| *depth < 9)
}

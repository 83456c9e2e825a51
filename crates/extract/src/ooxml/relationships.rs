//! OPC relationships between parts.

use std::collections::HashMap;

use super::xml::Xml;
use crate::Error;

/// The relationships of one part, without external targets.
#[derive(Debug, Default)]
pub(crate) struct Relationships {
    all: Vec<Relationship>,
    /// Index into `all` by identifier: a file may have as many relationships as references to them.
    by_id: HashMap<String, usize>,
}

#[derive(Debug)]
struct Relationship {
    /// Last segment of the type URI, which is the same in the transitional and the strict form.
    kind: String,
    /// Part name, relative to the package root.
    target: String,
}

/// Name of the relationships part of a part.
pub(super) fn part_name(part: &str) -> String {
    let (folder, file) = part.rsplit_once('/').map_or(("", part), |(folder, file)| (folder, file));
    let slash = if folder.is_empty() { "" } else { "/" };
    format!("{folder}{slash}_rels/{file}.rels")
}

// === impl ===

impl Relationships {
    pub(super) fn read(xml: &mut Xml<'_>, part: &str) -> Result<Relationships, Error> {
        let mut relations = Relationships::default();
        xml.child()?;
        while let Some(tag) = xml.child()? {
            let inside = tag.get("TargetMode").as_deref() != Some("External");
            if let (true, Some(id), Some(kind), Some(target)) =
                (inside, tag.get("Id"), tag.get("Type"), tag.get("Target"))
                && let Some(target) = resolve(part, &target)
            {
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                relations.by_id.entry(id.into_owned()).or_insert(relations.all.len());
                relations.all.push(Relationship { kind, target });
            }
            xml.skip()?;
        }
        Ok(relations)
    }

    pub(crate) fn target(&self, id: &str) -> Option<&str> {
        self.by_id.get(id).map(|at| self.all[*at].target.as_str())
    }

    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.all.iter().filter(move |relation| relation.kind == kind).map(|relation| relation.target.as_str())
    }
}

/// Resolves a target relative to the folder of a part; `None` if it leaves the package.
fn resolve(part: &str, target: &str) -> Option<String> {
    if let Some(absolute) = target.strip_prefix('/') {
        return Some(absolute.to_owned());
    }
    let mut pieces: Vec<&str> = part.split('/').collect();
    pieces.pop();
    for piece in target.split(['/', '\\']) {
        match piece {
            "" | "." => {}
            ".." => {
                pieces.pop()?;
            }
            piece => pieces.push(piece),
        }
    }
    Some(pieces.join("/"))
}

//! TOML parser. The library limits nesting and recovers from errors, so that all syntax errors are reported.

use std::path::Path;
use std::sync::Arc;

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::super::problem::{Origin, Problem};
use super::super::tree::{Data, Entry, Map, Node, whole};
use super::{position::Index, syntax};

pub(super) fn parse(text: &str, path: &Arc<Path>) -> Result<Node, Vec<Problem>> {
    let reader = Reader { index: Index::new(text), path };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problem = |error: &toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            syntax(path, reader.index.position(offset), format!("is not TOML: {}", error.message()))
        };
        let mut problems: Vec<Problem> = errors.iter().map(problem).collect();
        // Many open brackets are all reported at the end of the file.
        problems.dedup();
        return Err(problems);
    }
    let mut problems = Vec::new();
    let origin = reader.origin(table.span().start);
    let root = Node { data: reader.table(table.into_inner(), &mut problems), origin };
    if problems.is_empty() { Ok(root) } else { Err(problems) }
}

struct Reader<'a> {
    index: Index<'a>,
    path: &'a Arc<Path>,
}

impl Reader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        Origin::file(self.path, self.index.position(offset))
    }

    fn table(&self, table: DeTable<'_>, problems: &mut Vec<Problem>) -> Data {
        let entry = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| {
            let origin = self.origin(key.span().start);
            let node = self.value(value, problems);
            (key.into_inner().into_owned(), Entry { key: origin, node })
        };
        Data::Map(table.into_iter().map(entry).collect::<Map>())
    }

    fn value(&self, value: Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Node {
        let origin = self.origin(value.span().start);
        let data = match value.into_inner() {
            DeValue::String(text) => Data::String(text.into_owned().into()),
            DeValue::Boolean(truth) => Data::Bool(truth),
            DeValue::Datetime(time) => Data::String(time.to_string().into()),
            DeValue::Array(items) => Data::List(items.into_iter().map(|item| self.value(item, problems)).collect()),
            DeValue::Table(table) => self.table(table, problems),
            DeValue::Integer(integer) => self.number(whole_number(&integer), &origin, problems),
            DeValue::Float(float) => self.number(fraction(&float), &origin, problems),
        };
        Node { data, origin }
    }

    fn number(&self, number: Option<Number>, origin: &Origin, problems: &mut Vec<Problem>) -> Data {
        match number {
            Some(number) => Data::Number(number),
            None => {
                let message = "is a number that is not finite or has too many digits";
                problems.push(Problem::at(origin.clone(), Default::default(), message));
                Data::Null
            }
        }
    }
}

fn whole_number(integer: &DeInteger<'_>) -> Option<Number> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(Number::from)
}

fn fraction(float: &DeFloat<'_>) -> Option<Number> {
    float.as_str().parse().ok().and_then(Number::from_f64).map(whole)
}

//! TOML parser. The library limits nesting and recovers from errors, so that all syntax errors are reported.

use std::path::Path;
use std::sync::Arc;

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::super::diagnostic::{Diagnostic, Origin};
use super::super::spanned_value::{SpannedEntry, SpannedMap, SpannedValue, ValueData, to_integer_if_exact};
use super::{position::PositionIndex, syntax_error};

pub(super) fn parse(text: &str, path: &Arc<Path>) -> Result<SpannedValue, Vec<Diagnostic>> {
    let reader = TomlReader { index: PositionIndex::new(text), path };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problem = |error: &toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            syntax_error(path, reader.index.position(offset), format!("is not valid TOML: {}", error.message()))
        };
        let mut problems: Vec<Diagnostic> = errors.iter().map(problem).collect();
        // Many open brackets are all reported at the end of the file.
        problems.dedup();
        return Err(problems);
    }
    let mut problems = Vec::new();
    let origin = reader.origin(table.span().start);
    let root = SpannedValue { data: reader.table(table.into_inner(), &mut problems), origin };
    if problems.is_empty() { Ok(root) } else { Err(problems) }
}

struct TomlReader<'a> {
    index: PositionIndex<'a>,
    path: &'a Arc<Path>,
}

impl TomlReader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        Origin::file(self.path, self.index.position(offset))
    }

    fn table(&self, table: DeTable<'_>, problems: &mut Vec<Diagnostic>) -> ValueData {
        let entry = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| {
            let origin = self.origin(key.span().start);
            let node = self.value(value, problems);
            (key.into_inner().into_owned(), SpannedEntry { key: origin, node })
        };
        ValueData::Map(table.into_iter().map(entry).collect::<SpannedMap>())
    }

    fn value(&self, value: Spanned<DeValue<'_>>, problems: &mut Vec<Diagnostic>) -> SpannedValue {
        let origin = self.origin(value.span().start);
        let data = match value.into_inner() {
            DeValue::String(text) => ValueData::String(text.into_owned().into()),
            DeValue::Boolean(truth) => ValueData::Bool(truth),
            DeValue::Datetime(time) => ValueData::String(time.to_string().into()),
            DeValue::Array(items) => {
                ValueData::List(items.into_iter().map(|item| self.value(item, problems)).collect())
            }
            DeValue::Table(table) => self.table(table, problems),
            DeValue::Integer(integer) => self.number(whole_number(&integer), &origin, problems),
            DeValue::Float(float) => self.number(fraction(&float), &origin, problems),
        };
        SpannedValue { data, origin }
    }

    fn number(&self, number: Option<Number>, origin: &Origin, problems: &mut Vec<Diagnostic>) -> ValueData {
        match number {
            Some(number) => ValueData::Number(number),
            None => {
                let message = "is not a finite number or has too many digits";
                problems.push(Diagnostic::at(origin.clone(), Default::default(), message));
                ValueData::Null
            }
        }
    }
}

fn whole_number(integer: &DeInteger<'_>) -> Option<Number> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(Number::from)
}

fn fraction(float: &DeFloat<'_>) -> Option<Number> {
    float.as_str().parse().ok().and_then(Number::from_f64).map(to_integer_if_exact)
}

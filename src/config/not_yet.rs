//! Sections that a later version will use.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

use super::schema::NOT_YET;

/// Whatever is written there is accepted with a warning, so that a file made for a later version works.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NotYet;

impl<'de> Deserialize<'de> for NotYet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl JsonSchema for NotYet {
    fn schema_name() -> Cow<'static, str> {
        "NotYet".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({NOT_YET: true})
    }
}

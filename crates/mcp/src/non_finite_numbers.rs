//! Rejection of NaN and infinities, which JSON cannot represent (M-105).
//!
//! serde_json writes NaN and infinities as `null`, which silently turns a wrong number into a missing one. This
//! serializer walks a value first and reports the offending part.

use std::fmt;

use serde::ser::{self, Serialize};
use serde_json::Value;

/// The value as JSON, or the reason why it cannot be represented.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Value, String> {
    value.serialize(JsonValidator).map_err(|refusal| refusal.0)?;
    serde_json::to_value(value).map_err(|error| error.to_string())
}

#[derive(Debug)]
struct JsonError(String);

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JsonError {}

impl ser::Error for JsonError {
    fn custom<T: fmt::Display>(message: T) -> JsonError {
        JsonError(message.to_string())
    }
}

/// Serializer that visits every part and produces no output.
#[derive(Clone, Copy)]
struct JsonValidator;

macro_rules! fine {
    ($($method:ident: $kind:ty),* $(,)?) => {
        $(fn $method(self, _: $kind) -> Result<(), JsonError> { Ok(()) })*
    };
}

fn check_finite(number: f64) -> Result<(), JsonError> {
    if number.is_finite() { Ok(()) } else { Err(JsonError(format!("{number} is not a JSON number"))) }
}

impl ser::Serializer for JsonValidator {
    type Ok = ();
    type Error = JsonError;
    type SerializeSeq = JsonValidator;
    type SerializeTuple = JsonValidator;
    type SerializeTupleStruct = JsonValidator;
    type SerializeTupleVariant = JsonValidator;
    type SerializeMap = JsonValidator;
    type SerializeStruct = JsonValidator;
    type SerializeStructVariant = JsonValidator;

    fine! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_char: char, serialize_str: &str, serialize_bytes: &[u8], serialize_unit_struct: &'static str,
    }

    fn serialize_f32(self, number: f32) -> Result<(), JsonError> {
        check_finite(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<(), JsonError> {
        check_finite(number)
    }

    fn serialize_none(self) -> Result<(), JsonError> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), JsonError> {
        Ok(())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), JsonError> {
        Ok(())
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<JsonValidator, JsonError> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<JsonValidator, JsonError> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<JsonValidator, JsonError> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<JsonValidator, JsonError> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<JsonValidator, JsonError> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<JsonValidator, JsonError> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<JsonValidator, JsonError> {
        Ok(self)
    }
}

macro_rules! members {
    ($($collection:ident: $method:ident),* $(,)?) => {
        $(impl ser::$collection for JsonValidator {
            type Ok = ();
            type Error = JsonError;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), JsonError> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), JsonError> {
                Ok(())
            }
        })*
    };
}

members! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

macro_rules! fields {
    ($($collection:ident),* $(,)?) => {
        $(impl ser::$collection for JsonValidator {
            type Ok = ();
            type Error = JsonError;

            fn serialize_field<T: ?Sized + Serialize>(&mut self, _: &'static str, value: &T) -> Result<(), JsonError> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), JsonError> {
                Ok(())
            }
        })*
    };
}

fields! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for JsonValidator {
    type Ok = ();
    type Error = JsonError;

    // serde_json rejects non-string keys and decides which numbers are valid keys.
    fn serialize_key<T: ?Sized + Serialize>(&mut self, _: &T) -> Result<(), JsonError> {
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), JsonError> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), JsonError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::to_json;

    #[test]
    fn m105_nan_and_infinities_are_refused_wherever_they_hide() {
        assert_eq!(to_json(&f64::NAN), Err("NaN is not a JSON number".into()));
        assert_eq!(to_json(&vec![Some(1.0), Some(f32::INFINITY)]), Err("inf is not a JSON number".into()));
        assert!(to_json(&HashMap::from([("score", f64::NEG_INFINITY)])).is_err());
    }

    #[test]
    fn m105_keys_that_are_not_strings_are_refused() {
        assert_eq!(to_json(&HashMap::from([((1, 2), 3)])), Err("key must be a string".into()));
    }

    #[test]
    fn ordinary_values_pass_unchanged() {
        assert_eq!(to_json(&("a", 1, 2.5, [true], None::<u8>)), Ok(serde_json::json!(["a", 1, 2.5, [true], null])));
    }
}

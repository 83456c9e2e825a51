//! JSON Schemas of tools: compiled once, validated on every call.
//!
//! No I/O. Schemas are 2020-12 unless they declare another draft; a reference outside the schema is rejected, never
//! fetched.

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

/// A compiled schema with its published JSON.
pub struct Schema {
    json: Value,
    validator: jsonschema::Validator,
    headers: Vec<MirroredParameter>,
}

/// One validation error of a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Violation {
    /// JSON pointer to the value; empty for the root.
    pub path: String,
    /// The violated schema keyword.
    pub keyword: String,
    /// The argument concerned: the missing one, or the first segment of `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    pub message: String,
}

/// A parameter that HTTP clients repeat as `Mcp-Param-<name>` (modern era).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParameter {
    /// Property names from the root of the arguments.
    pub path: Vec<String>,
    /// The part after `Mcp-Param-`.
    pub header: String,
}

/// Maximum number of subschemas: validation cost grows with them.
const MAX_SUBSCHEMAS: usize = 2_000;
/// Maximum number of reported violations.
const MAX_VIOLATIONS: usize = 20;

/// Compiles the schema of a tool's arguments, or returns why it is unusable.
pub fn compile_input(json: Value) -> Result<Schema, String> {
    let Some(object) = json.as_object() else {
        return Err("it is not a JSON object".into());
    };
    match object.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        _ => return Err("its `type` must be \"object\"".into()),
    }
    if object.get("properties").is_some_and(|properties| !properties.is_object()) {
        return Err("its `properties` must be an object".into());
    }
    let headers = mirrored_parameters(&json)?;
    Ok(Schema { headers, ..compile(json)? })
}

/// Compiles any schema, such as that of a tool's structured output.
pub fn compile(json: Value) -> Result<Schema, String> {
    if !json.is_object() {
        return Err("it is not a JSON object".into());
    }
    if count_subschemas(&json) > MAX_SUBSCHEMAS {
        return Err(format!("it has too many subschemas (maximum {MAX_SUBSCHEMAS})"));
    }
    // `offline` prevents the compiler from resolving references over the network or from files.
    let validator = jsonschema::options().offline().build(&json).map_err(|error| error.to_string())?;
    Ok(Schema { json, validator, headers: Vec::new() })
}

/// The schema of a type of arguments, simplified for clients: everything inlined, no titles, no `null` branches of
/// optional members.
pub fn derive<T: JsonSchema>() -> Value {
    derive_with::<T>(Nulls::Drop)
}

/// The schema of a type of results, simplified in the same way. A result may contain `null`, so its schema keeps it.
pub fn derive_output<T: JsonSchema>() -> Value {
    derive_with::<T>(Nulls::Keep)
}

/// What happens to the `null` branch of an optional member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Drop,
    Keep,
}

fn derive_with<T: JsonSchema>(nulls: Nulls) -> Value {
    let generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut json = generator.into_root_schema_for::<T>().to_value();
    simplify(&mut json, nulls);
    if let Some(object) = json.as_object_mut() {
        // The doc comment of the type describes the Rust type, not the tool.
        object.remove("description");
        if object.get("type").is_some_and(|kind| kind == "object") {
            object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        }
    }
    json
}

impl Schema {
    /// The schema as published.
    pub fn json(&self) -> &Value {
        &self.json
    }

    pub fn mirrored_parameters(&self) -> &[MirroredParameter] {
        &self.headers
    }

    /// Validates a value and returns all violations, up to a limit.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        Err(self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| violation(&error)).collect())
    }

    /// Whether a `null` argument counts as absent: the schema neither requires it nor accepts null.
    pub(crate) fn null_means_absent(&self, name: &str) -> bool {
        let Some(property) = self.json.get("properties").and_then(|properties| properties.get(name)) else {
            return false;
        };
        let required = self
            .json
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|required| required == name));
        !required && property.get("type").is_some_and(|kind| kind.is_string() && kind != "null")
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.json).finish()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.json == other.json
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "`{}`: {}", path.trim_start_matches('/').replace('/', "."), self.message),
        }
    }
}

fn violation(error: &jsonschema::ValidationError<'_>) -> Violation {
    let path = error.instance_path().to_string();
    let parameter = match error.kind() {
        ValidationErrorKind::Required { property } if path.is_empty() => property.as_str().map(str::to_owned),
        _ => path.split('/').nth(1).map(|step| step.replace("~1", "/").replace("~0", "~")),
    };
    // The value is masked: arguments are user data and must not leak into logs through error messages.
    let message = match error.kind() {
        ValidationErrorKind::Required { property } => format!("`{}` is missing", property.as_str().unwrap_or_default()),
        _ => error.masked_with("the value").to_string(),
    };
    Violation { path, keyword: error.kind().keyword().to_owned(), parameter, message }
}

fn simplify(json: &mut Value, nulls: Nulls) {
    match json {
        Value::Object(object) => {
            if object.get("title").is_some_and(Value::is_string) && !object.contains_key("x-keep-title") {
                object.remove("title");
            }
            if nulls == Nulls::Drop {
                drop_null_branch(object);
            }
            // `format: "uint32"` and the like are specific to Rust, and strict clients reject unknown formats.
            if object.get("format").and_then(Value::as_str).is_some_and(|format| {
                format.starts_with("uint") || format.starts_with("int") || format == "double" || format == "float"
            }) {
                object.remove("format");
            }
            for (key, value) in object.iter_mut() {
                match key.as_str() {
                    // Keys in here are user-defined names, not keywords.
                    "properties" | "$defs" => value.as_object_mut().into_iter().for_each(|members| {
                        members.values_mut().for_each(|member| simplify(member, nulls));
                    }),
                    "default" | "examples" | "const" | "enum" => {}
                    _ => simplify(value, nulls),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| simplify(item, nulls)),
        _ => {}
    }
}

/// `["string", "null"]` becomes `"string"`, and `anyOf [X, null]` becomes X: only `required` marks optional members.
fn drop_null_branch(object: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    let Some(Value::Array(branches)) = object.get_mut("anyOf") else { return };
    branches.retain(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = branches.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

fn count_subschemas(json: &Value) -> usize {
    match json {
        Value::Object(object) => 1 + object.values().map(count_subschemas).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_subschemas).sum(),
        _ => 0,
    }
}

/// Collects `x-mcp-header` annotations; one at a position or in a form the specification forbids makes the schema
/// invalid.
fn mirrored_parameters(json: &Value) -> Result<Vec<MirroredParameter>, String> {
    let mut found = Vec::new();
    collect_mirrored(json, &mut Vec::new(), true, &mut found)?;
    let mut names: Vec<String> = found.iter().map(|parameter| parameter.header.to_ascii_lowercase()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("`x-mcp-header` {} is used twice", pair[0])),
        None => Ok(found),
    }
}

fn collect_mirrored(
    json: &Value,
    path: &mut Vec<String>,
    reachable: bool,
    found: &mut Vec<MirroredParameter>,
) -> Result<(), String> {
    let Some(object) = json.as_object() else {
        if let Some(items) = json.as_array() {
            for item in items {
                collect_mirrored(item, path, false, found)?;
            }
        }
        return Ok(());
    };
    if let Some(header) = object.get("x-mcp-header") {
        let header = header.as_str().unwrap_or_default();
        let token = !header.is_empty()
            && header.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        let primitive = matches!(object.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean"));
        if !token {
            return Err("`x-mcp-header` must be a non-empty HTTP token".into());
        }
        if !reachable || path.is_empty() || !primitive {
            return Err(format!(
                "`x-mcp-header` {header} is only allowed on a string, integer or boolean property reached through \
                 `properties`"
            ));
        }
        found.push(MirroredParameter { path: path.clone(), header: header.to_owned() });
    }
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect_mirrored(property, path, reachable, found)?;
                    path.pop();
                }
            }
            ("default" | "examples" | "const" | "enum", _) => {}
            (_, nested) => collect_mirrored(nested, path, false, found)?,
        }
    }
    Ok(())
}

//! Tool definition: name, description, compiled schema, effect and handler.
//!
//! A [`Tool`] without a schema cannot be built (invariant 2), and only `dispatch` can run one (invariant 1).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{Error, RegistrationError};
use crate::metrics::ToolStats;
use crate::outcome::{Dialect, IntoOutcome, ToolError, ToolOutcome, core_dialect};
use crate::schema::{self, Schema, Violation};
use crate::trust::{Effect, TrustLevel};

/// A function that callers run by name.
pub struct Tool {
    name: Arc<str>,
    title: Option<String>,
    description: String,
    input: Schema,
    output: Option<Schema>,
    meta: ToolMeta,
    allows_missing_arguments: bool,
    dialect: Dialect,
    pub(crate) run: Handler,
    pub(crate) stats: ToolStats,
}

/// Metadata of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolMeta {
    /// The module that declares it.
    pub module: String,
    pub effect: Effect,
    /// Minimum trust of callers, if higher than its effect requires.
    pub min_trust: Option<TrustLevel>,
    pub idempotent: bool,
    /// The version in which it was deprecated; it still works, with a warning (M-71).
    pub deprecated_in: Option<String>,
    /// How long a discovery result with this tool stays fresh.
    pub cache_ttl: Duration,
    /// Its timeout, if it differs from the server's.
    pub timeout: Option<Duration>,
    pub tasks: TaskSupport,
}

/// Whether a call may be answered with a task handle instead of a result (modern era, tasks extension).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskSupport {
    #[default]
    Never,
    /// A task for clients with task support, an ordinary call for the rest.
    Optional,
    /// Only as a task; clients without task support get an error that names the missing capability.
    Always,
    /// Like `Always`, but the handler runs first (it may elicit input) and hands over the rest with
    /// [`ToolOutcome::background`].
    Handoff,
    /// The handler creates a task in the server's [`TaskStore`](crate::TaskStore) and refers to it with
    /// [`ToolOutcome::Task`]; the library creates none.
    External,
}

pub(crate) type Handler = Arc<dyn Fn(Context, Arguments) -> BoxFuture<'static, ToolOutcome> + Send + Sync>;

/// The arguments of one call, already validated against the tool's schema.
#[derive(Debug, Clone)]
pub struct Arguments(Arc<Value>);

/// Builder of a tool; finish it with [`ToolBuilder::run`].
#[derive(Debug)]
pub struct ToolBuilder {
    name: String,
    title: Option<String>,
    description: String,
    input: Option<Value>,
    output: Option<Value>,
    meta: ToolMeta,
    allows_missing_arguments: bool,
    dialect: Dialect,
}

/// Default TTL of a discovery result (M-61).
pub(crate) const DEFAULT_CACHE_TTL: Duration = Duration::from_secs(300);

impl Tool {
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder {
            name: name.into(),
            title: None,
            description: String::new(),
            input: None,
            output: None,
            meta: ToolMeta {
                module: String::new(),
                effect: Effect::Reads,
                min_trust: None,
                idempotent: false,
                deprecated_in: None,
                cache_ttl: DEFAULT_CACHE_TTL,
                timeout: None,
                tasks: TaskSupport::Never,
            },
            allows_missing_arguments: false,
            dialect: core_dialect,
        }
    }

    /// The default name of a declaration: the last segment of its module and the function name (M-62).
    ///
    /// A crate root has no module segment, so only the function name is used.
    pub fn derived_name(module_path: &str, function: &str) -> String {
        match module_path.rsplit_once("::") {
            Some((_, module)) => format!("{module}_{function}"),
            None => function.to_owned(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as a shared string.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn input_schema(&self) -> &Schema {
        &self.input
    }

    pub fn output_schema(&self) -> Option<&Schema> {
        self.output.as_ref()
    }

    pub fn meta(&self) -> &ToolMeta {
        &self.meta
    }

    pub fn stats(&self) -> &ToolStats {
        &self.stats
    }

    /// Validates arguments; missing required ones are accepted if the handler reports them.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), Vec<Violation>> {
        let Err(violations) = self.input.check(arguments) else { return Ok(()) };
        let is_missing = |violation: &Violation| violation.keyword == "required" && violation.path.is_empty();
        match self.allows_missing_arguments && violations.iter().all(is_missing) {
            true => Ok(()),
            false => Err(violations),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the declarations are equal, regardless of the handler function (M-64).
    pub(crate) fn same_declaration(&self, other: &Tool) -> bool {
        let declared = |tool: &Tool| (tool.meta.effect, tool.meta.min_trust);
        self.input == other.input && self.output == other.output && declared(self) == declared(other)
    }

    pub(crate) fn listing_for(&self, with_output_schema: bool) -> Value {
        let mut entry = self.listing();
        if !with_output_schema && let Some(members) = entry.as_object_mut() {
            members.remove("outputSchema");
        }
        entry
    }

    /// The entry in `tools/list`.
    pub fn listing(&self) -> Value {
        let mut entry = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input.json(),
            "annotations": {
                "readOnlyHint": self.meta.effect == Effect::Reads,
                "destructiveHint": self.meta.effect == Effect::Destroys,
                "idempotentHint": self.meta.idempotent || self.meta.effect == Effect::Reads,
            },
            "metadata": {
                "module": self.meta.module,
                "destructive": self.meta.effect == Effect::Destroys,
                "deprecated_in": self.meta.deprecated_in,
                "cache_ttl": self.meta.cache_ttl.as_secs(),
            },
        });
        if let Some(least) = self.meta.min_trust {
            entry["metadata"]["trust"] = least.as_str().into();
        }
        if let Some(title) = &self.title {
            entry["title"] = title.as_str().into();
        }
        if let Some(output) = &self.output {
            entry["outputSchema"] = output.json().clone();
        }
        entry
    }
}

impl ToolBuilder {
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    pub fn module(mut self, module: impl Into<String>) -> Self {
        self.meta.module = module.into();
        self
    }

    /// An explicit schema.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input = Some(schema);
        self
    }

    /// The schema of a Rust type, inlined and flat.
    pub fn input<A: JsonSchema>(self) -> Self {
        self.input_schema(schema::derive::<A>())
    }

    /// A tool without arguments.
    pub fn no_input(self) -> Self {
        self.input_schema(json!({ "type": "object", "properties": {} }))
    }

    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// The output schema of the handler's return type, if it has one.
    pub fn output<R: IntoOutcome>(mut self) -> Self {
        self.output = R::output_schema();
        self
    }

    pub fn effect(mut self, effect: Effect) -> Self {
        self.meta.effect = effect;
        self
    }

    /// Requires this trust level although the effect needs less, for example because the tool reveals sensitive
    /// information.
    pub fn min_trust(mut self, level: TrustLevel) -> Self {
        self.meta.min_trust = Some(level);
        self
    }

    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.meta.idempotent = idempotent;
        self
    }

    pub fn deprecated_in(mut self, version: impl Into<String>) -> Self {
        self.meta.deprecated_in = Some(version.into());
        self
    }

    pub fn cache_ttl(mut self, ttl: Duration) -> Self {
        self.meta.cache_ttl = ttl;
        self
    }

    pub fn timeout(mut self, limit: Duration) -> Self {
        self.meta.timeout = Some(limit);
        self
    }

    pub fn task_support(mut self, tasks: TaskSupport) -> Self {
        self.meta.tasks = tasks;
        self
    }

    /// Missing required arguments reach the handler, which must expect them and report them.
    pub fn allow_missing_arguments(mut self) -> Self {
        self.allows_missing_arguments = true;
        self
    }

    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Compiles the schemas and builds the tool.
    pub fn run<F, Fut, R>(self, handler: F) -> Result<Tool, RegistrationError>
    where
        F: Fn(Context, Arguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoOutcome,
    {
        // Type-erased here, so that no other code is generic over handlers. The call happens inside the future: a
        // handler that panics before its first await is caught like any other.
        let handler = Arc::new(handler);
        self.finish(Arc::new(move |context, arguments| {
            let handler = handler.clone();
            Box::pin(async move { handler(context, arguments).await.into_outcome() })
        }))
    }

    fn finish(self, run: Handler) -> Result<Tool, RegistrationError> {
        let ToolBuilder {
            name,
            title,
            description,
            input,
            output,
            meta,
            allows_missing_arguments: answers_missing,
            dialect,
        } = self;
        if let Err(reason) = check_name(&name) {
            return Err(RegistrationError::InvalidName { name, reason });
        }
        let Some(input) = input else {
            return Err(RegistrationError::NoSchema(name));
        };
        let invalid = |which: &'static str, reason: String| RegistrationError::InvalidSchema {
            name: name.clone(),
            which,
            reason,
        };
        let input = schema::compile_input(input).map_err(|reason| invalid("input", reason))?;
        let output = output
            .filter(publishable_output)
            .map(schema::compile)
            .transpose()
            .map_err(|reason| invalid("output", reason))?;
        Ok(Tool {
            name: name.into(),
            title,
            description,
            input,
            output,
            meta,
            allows_missing_arguments: answers_missing,
            dialect,
            run,
            stats: ToolStats::default(),
        })
    }
}

impl Arguments {
    pub(crate) fn new(value: Value) -> Arguments {
        Arguments(Arc::new(value))
    }

    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Parses the arguments into the handler's type. Strings are moved, not copied, if this is the only reference.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, ToolError> {
        let read = match Arc::try_unwrap(self.0) {
            Ok(value) => T::deserialize(value),
            Err(shared) => T::deserialize(&*shared),
        };
        read.map_err(|error| {
            // The schema accepted a value that the type rejects: still an argument error.
            let violation =
                Violation { path: String::new(), keyword: "type".into(), parameter: None, message: error.to_string() };
            ToolError::Protocol(Error::Schema { tool: String::new(), violations: vec![violation] })
        })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// Some clients reject the whole list if an output schema is not an object, so only object schemas are published.
fn publishable_output(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.len() > 128 {
        return Err("it is longer than 128 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
        return Err("only letters, digits, `_`, `-` and `.` are allowed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m62_derived_names_are_module_and_function() {
        assert_eq!(Tool::derived_name("corbie::memory", "put"), "memory_put");
        assert_eq!(Tool::derived_name("echo", "say"), "say");
    }

    #[test]
    fn m63_a_tool_without_a_schema_cannot_be_built() {
        let error = Tool::builder("lost").run(async |_, _| "never").expect_err("no schema");
        assert_eq!(error, RegistrationError::NoSchema("lost".into()));
    }

    #[test]
    fn m65_an_invalid_schema_cannot_be_built() {
        for bad in [
            json!("text"),
            json!({ "type": "string" }),
            json!({ "type": "object", "properties": { "a": { "type": "strin" } } }),
        ] {
            let error = Tool::builder("bad").input_schema(bad).run(async |_, _| "never").expect_err("invalid");
            assert!(matches!(error, RegistrationError::InvalidSchema { which: "input", .. }), "{error}");
        }
    }

    #[test]
    fn names_that_clients_cannot_carry_are_refused() {
        for name in ["", "has space", "ünïcode", &"x".repeat(129)] {
            assert!(Tool::builder(name).no_input().run(async |_, _| ()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_reference_to_the_network_is_refused_not_fetched() {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": "http://127.0.0.1:9/schema.json" } } });
        assert!(Tool::builder("remote").input_schema(schema).run(async |_, _| ()).is_err());
    }
}

//! The `#[mcp_tool]` attribute macro: turns a typed function into an MCP tool.
//!
//! Name, description, schema and metadata are derived from the function, so they cannot diverge from the code. This
//! crate only transforms tokens; `corbie_mcp` validates and runs the tools.

mod arg_attribute;
mod arguments_struct;
mod attribute;
mod description;
mod diagnostics;
mod expand;
mod function;
mod signature;
mod suggestion;

use proc_macro::TokenStream;

/// Turns a function, or a method of the struct that holds its state, into a tool.
///
/// The function stays as it is.
/// The macro adds `<function>_tool()`, which returns `Result<Tool, RegistrationError>`.
///
/// ```
/// use corbie_mcp::{Json, RegistrationError, Server, mcp_tool};
/// # use schemars::JsonSchema;
/// # use serde::Serialize;
///
/// #[derive(Serialize, JsonSchema)]
/// struct Forecast {
///     lines: Vec<String>,
/// }
///
/// /// The weather of the coming days.
/// #[mcp_tool(title = "Forecast", timeout = 5)]
/// async fn forecast(
///     /// City name, as people there write it
///     #[arg(length(min = 1, max = 80))]
///     city: String,
///     #[arg(default = 3, range(min = 1, max = 14))] days: u32,
///     language: Option<String>,
/// ) -> Json<Forecast> {
///     # let _ = language;
///     Json(Forecast { lines: (1..=days).map(|day| format!("{city}, day {day}: fair")).collect() })
/// }
///
/// let server = Server::builder("weather", "1.0.0").tool(forecast_tool()).build()?;
/// # Ok::<(), RegistrationError>(())
/// ```
///
/// A method works in any inherent `impl` block: its tool function takes `self: &Arc<Self>`, and the tool holds
/// a clone of that `Arc`.
///
/// ```
/// # use std::sync::Arc;
/// # use std::sync::atomic::{AtomicU32, Ordering};
/// # use corbie_mcp::{RegistrationError, mcp_tool};
/// #[derive(Default)]
/// struct Counter {
///     total: AtomicU32,
/// }
///
/// impl Counter {
///     /// Adds to the total and returns it.
///     #[mcp_tool(effect = changes)]
///     async fn add(&self, amount: u32) -> String {
///         (self.total.fetch_add(amount, Ordering::Relaxed) + amount).to_string()
///     }
/// }
///
/// let counter = Arc::new(Counter::default());
/// let tool = counter.add_tool()?;
/// assert_eq!(tool.input_schema().json()["required"][0], "amount");
/// # Ok::<(), RegistrationError>(())
/// ```
///
/// An associated function without `&self` cannot be a tool: from inside an `impl` block the attribute cannot determine
/// the type. Move it out of the block. A trait method cannot be a tool either.
///
/// # Parameters
///
/// Each parameter becomes one property of the input schema; its type must be owned and implement
/// `Deserialize + JsonSchema`. `Option<T>` is not required. Unknown arguments are ignored.
///
/// | on a parameter | does |
/// |---|---|
/// | `/// text` | the property's description |
/// | `#[arg(default = 3)]` | not required; the value when absent. `#[arg(default)]` uses `Default` |
/// | `#[arg(rename = "city-name")]` | the property's name on the wire |
/// | `#[arg(range(min = 1, max = 50))]` | bounds of a number, either end may be left out |
/// | `#[arg(length(min = 1, max = 500))]` | length of a string or list, either end may be left out |
/// | `#[args]` | this struct is the whole input; no other properties are allowed |
///
/// A parameter of type `Context` or `&Context` receives the context of the call and is not a property.
///
/// # Keys
///
/// | key | default |
/// |---|---|
/// | `name = "..."` | last segment of the module path, `_`, function name |
/// | `title = "..."` | none |
/// | `description = "..."` | the doc comment; one of the two is required |
/// | `effect = reads`, `changes` or `destroys` | `reads` |
/// | `read_only`, `destructive` | short for `effect = reads` and `effect = destroys` |
/// | `idempotent` | not idempotent |
/// | `deprecated_in = "1.2"` | not deprecated |
/// | `timeout = 5` (seconds) | the server's |
/// | `cache_ttl = 60` (seconds) | 300 |
/// | `task = never`, `optional`, `always` or `handoff` | `never` |
/// | `module = "..."` | the module path |
/// | `dialect = path::to_a_dialect` | `corbie_mcp::core_dialect` |
/// | `blocking` | see below |
///
/// # Functions that are not `async`
///
/// They run on the thread that reads the request, and so must not block.
/// A function with long computations or file access needs `blocking` and runs on a blocking thread.
#[proc_macro_attribute]
pub fn mcp_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(attribute.into(), item.into()).into()
}

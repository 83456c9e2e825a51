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

/// Turns a function, or a method of the struct that holds its state, into a tool. `corbie_mcp` documents it where it
/// re-exports it: examples here would need `corbie_mcp`, which a second build of all its dependencies would compile for
/// the host.
#[proc_macro_attribute]
pub fn mcp_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(attribute.into(), item.into()).into()
}

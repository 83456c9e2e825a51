//! Generates the arguments struct of a tool function.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Ident, Lit};

use crate::arg_attribute::DefaultValue;
use crate::function::Function;
use crate::signature::{InputSource, Parameters, Property};

/// Generates the flat struct `__Arguments` with one field per property; empty without properties.
///
/// Unknown arguments are ignored, so that clients may send arguments of a later version of the tool.
pub(crate) fn arguments_struct(parameters: &Parameters, function: &Function) -> TokenStream {
    let InputSource::Properties(properties) = parameters.input_source() else {
        return TokenStream::new();
    };
    let fields = properties.iter().map(|property| field(property));
    let defaults = properties.iter().filter_map(|property| default_function(property));
    let shown_name = format!("{}_arguments", function.signature.ident.unraw());
    quote! {
        #[derive(::corbie_mcp::__private::serde::Deserialize, ::corbie_mcp::__private::schemars::JsonSchema)]
        #[serde(crate = "::corbie_mcp::__private::serde", rename = #shown_name)]
        #[schemars(crate = "::corbie_mcp::__private::schemars")]
        struct __Arguments {
            #(#fields,)*
        }
        #(#defaults)*
    }
}

fn field(property: &Property) -> TokenStream {
    let Property { ident, kind, description, argument } = property;
    let description = description.iter().map(|text| quote!(#[schemars(description = #text)]));
    let rename = argument.rename.iter().map(|name| quote!(#[serde(rename = #name)]));
    let default = argument.default.iter().map(|default| match default {
        DefaultValue::OfType => quote!(#[serde(default)]),
        DefaultValue::Value(_) => {
            let path = default_function_name(ident).to_string();
            quote!(#[serde(default = #path)])
        }
    });
    let range = argument.range.iter().map(|bounds| {
        let ends = bounds.to_schemars();
        quote!(#[schemars(range(#ends))])
    });
    let length = argument.length.iter().map(|bounds| {
        let ends = bounds.to_schemars();
        quote!(#[schemars(length(#ends))])
    });
    quote!(#(#description)* #(#rename)* #(#default)* #(#range)* #(#length)* #ident: #kind)
}

/// serde accepts a default only as a function name.
fn default_function(property: &Property) -> Option<TokenStream> {
    let Some(DefaultValue::Value(value)) = &property.argument.default else {
        return None;
    };
    let name = default_function_name(&property.ident);
    let kind = &property.kind;
    // Makes `default = "metric"` work for a `String`. Numbers stay as written: a conversion would fix their type first.
    let is_text = matches!(&**value, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }));
    let value = if is_text {
        quote_spanned!(value.span()=> ::core::convert::Into::into(#value))
    } else {
        value.to_token_stream()
    };
    Some(quote!(fn #name() -> #kind { #value }))
}

fn default_function_name(property: &Ident) -> Ident {
    format_ident!("__default_{}", property.unraw())
}

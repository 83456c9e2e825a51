//! Generates the tool function next to the user's function.
//!
//! Generated names start with `__`, because they share a scope with the user's types and functions and must not shadow
//! them. Paths are absolute for the same reason.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ReturnType;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::arguments_struct::arguments_struct;
use crate::attribute::ToolAttribute;
use crate::description;
use crate::diagnostics;
use crate::function::Function;
use crate::signature::{self, InputSource, Parameter, Parameters};

/// Emits the original function, followed by its tool function or by the errors.
///
/// The function is emitted in both cases: otherwise "cannot find function" errors would hide the real one.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error);
        }
    };
    let sibling = tool_function(attribute, &function).unwrap_or_else(syn::Error::into_compile_error);
    signature::strip_helper_attributes(&mut function.signature);
    quote!(#function #sibling)
}

fn tool_function(attribute: TokenStream, function: &Function) -> syn::Result<TokenStream> {
    let (attribute, parameters) = diagnostics::combine_results(
        syn::parse2::<ToolAttribute>(attribute),
        signature::parse_parameters(&function.signature),
    )?;
    let description = read_description(&attribute, function)?;
    if let (Some(blocking), Some(_)) = (attribute.blocking, &function.signature.asyncness) {
        let message = "`blocking` is for functions that are not `async`; remove one of the two";
        return Err(syn::Error::new(blocking, message));
    }

    let visibility = &function.visibility;
    let name = format_ident!("{}_tool", function.signature.ident.unraw(), span = function.signature.ident.span());
    let doc = format!("The tool made from `{}`, ready to register.", function.signature.ident);
    let conditions = function.attributes.iter().filter(|one| one.path().is_ident("cfg"));
    let deprecated = function.attributes.iter().any(|one| one.path().is_ident("deprecated"));
    let allowed = deprecated.then(|| quote!(#[allow(deprecated)]));
    let receiver = parameters.is_method.then(|| quote!(self: &::std::sync::Arc<Self>));
    let state = parameters.is_method.then(|| quote!(let __this = ::std::sync::Arc::clone(self);));
    let arguments = arguments_struct(&parameters, function);
    let builder = builder(&attribute, &description, &parameters, function);
    let handler = handler(&attribute, &parameters, function);
    Ok(quote! {
        #(#conditions)*
        #[doc = #doc]
        #allowed
        #visibility fn #name(#receiver)
            -> ::core::result::Result<::corbie_mcp::Tool, ::corbie_mcp::RegistrationError>
        {
            #arguments
            #state
            #builder.run(#handler)
        }
    })
}

fn read_description(attribute: &ToolAttribute, function: &Function) -> syn::Result<String> {
    if let Some(text) = &attribute.description {
        return Ok(text.value());
    }
    description::doc_text(&function.attributes).ok_or_else(|| {
        let message = "a tool must have a description, because models choose tools by it; add a doc comment (`/// \
            ...`) to the function, or `description = \"...\"`";
        syn::Error::new(function.signature.ident.span(), message)
    })
}

fn builder(attribute: &ToolAttribute, description: &str, parameters: &Parameters, function: &Function) -> TokenStream {
    let plain_name = function.signature.ident.unraw().to_string();
    let name = match &attribute.name {
        Some(name) => name.to_token_stream(),
        None => quote!(::corbie_mcp::Tool::derived_name(::core::module_path!(), #plain_name)),
    };
    let module = match &attribute.module {
        Some(module) => module.to_token_stream(),
        None => quote!(::core::module_path!()),
    };
    let input = match parameters.input_source() {
        InputSource::Empty => quote! {
            .input_schema(::corbie_mcp::__private::serde_json::json!({ "type": "object", "properties": {} }))
        },
        InputSource::Properties(_) => quote!(.input::<__Arguments>()),
        InputSource::Struct(kind) => quote_spanned!(kind.span()=> .input::<#kind>()),
    };
    let output = match &function.signature.output {
        ReturnType::Default => quote!(.output::<()>()),
        ReturnType::Type(_, kind) => quote_spanned!(kind.span()=> .output::<#kind>()),
    };
    let title = attribute.title.iter().map(|title| quote!(.title(#title)));
    let effect = attribute.effect.iter().map(|effect| quote!(.effect(::corbie_mcp::Effect::#effect)));
    let idempotent = attribute.idempotent.iter().map(|yes| quote!(.idempotent(#yes)));
    let deprecated = attribute.deprecated_in.iter().map(|version| quote!(.deprecated_in(#version)));
    let timeout =
        attribute.timeout_seconds.iter().map(|seconds| quote!(.timeout(::core::time::Duration::from_secs(#seconds))));
    let cache_ttl = attribute
        .cache_ttl_seconds
        .iter()
        .map(|seconds| quote!(.cache_ttl(::core::time::Duration::from_secs(#seconds))));
    let task = attribute.task.iter().map(|task| quote!(.task_support(::corbie_mcp::TaskSupport::#task)));
    let dialect = attribute.dialect.iter().map(|dialect| quote!(.dialect(#dialect)));
    quote! {
        ::corbie_mcp::Tool::builder(#name)
            .description(#description)
            .module(#module)
            #input
            #output
            #(#title)* #(#effect)* #(#idempotent)* #(#deprecated)* #(#timeout)* #(#cache_ttl)* #(#task)* #(#dialect)*
    }
}

/// The handler closure: parses the arguments, calls the function, converts the return value to an outcome.
fn handler(attribute: &ToolAttribute, parameters: &Parameters, function: &Function) -> TokenStream {
    let share_state = parameters.is_method.then(|| quote!(let __this = ::std::sync::Arc::clone(&__this);));
    let kind = match parameters.input_source() {
        InputSource::Empty => None,
        InputSource::Properties(_) => Some(quote!(__Arguments)),
        InputSource::Struct(kind) => Some(kind.to_token_stream()),
    };
    let read_input = kind.map(|kind| {
        quote! {
            let __input = match __arguments.parse::<#kind>() {
                ::core::result::Result::Ok(__input) => __input,
                ::core::result::Result::Err(__error) => {
                    return ::corbie_mcp::IntoOutcome::into_outcome(
                        ::core::result::Result::<(), ::corbie_mcp::ToolError>::Err(__error),
                    );
                }
            };
        }
    });
    let values = parameters.in_order.iter().map(|parameter| match parameter {
        Parameter::Context => quote!(__context),
        Parameter::BorrowedContext => quote!(&__context),
        Parameter::Property(property) => {
            let ident = &property.ident;
            quote!(__input.#ident)
        }
        Parameter::Struct(_) => quote!(__input),
    });
    let ident = &function.signature.ident;
    let call =
        if parameters.is_method { quote!(Self::#ident(&__this, #(#values),*)) } else { quote!(#ident(#(#values),*)) };
    let returned = match (&function.signature.asyncness, attribute.blocking) {
        (Some(_), _) => quote!(#call.await),
        (None, None) => call,
        (None, Some(_)) => quote!(::corbie_mcp::__private::run_blocking(move || #call).await),
    };
    quote! {
        move |__context: ::corbie_mcp::Context, __arguments: ::corbie_mcp::Arguments| {
            #share_state
            async move {
                #read_input
                ::corbie_mcp::IntoOutcome::into_outcome(#returned)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generated `_tool` function, after checking that the expansion is valid Rust.
    fn tool_of(attribute: TokenStream, item: TokenStream) -> syn::ItemFn {
        let file: syn::File = syn::parse2(expand(attribute, item)).expect("valid Rust");
        match file.items.into_iter().nth(1) {
            Some(syn::Item::Fn(function)) => function,
            _ => panic!("a second function expected"),
        }
    }

    fn refusal(attribute: TokenStream, item: TokenStream) -> String {
        let error = syn::parse2::<Function>(item)
            .and_then(|function| tool_function(attribute, &function))
            .expect_err("should have been refused");
        error.to_string()
    }

    #[test]
    fn the_tool_function_is_as_visible_as_the_function() {
        let item = quote! { /// Says hello.
        pub(crate) async fn r#type(name: String) -> String { name } };
        let tool = tool_of(quote!(), item);
        assert_eq!(tool.sig.ident, "type_tool");
        assert_eq!(tool.vis.to_token_stream().to_string(), "pub (crate)");
        assert!(tool.sig.inputs.is_empty());
    }

    #[test]
    fn the_tool_function_is_compiled_under_the_same_conditions() {
        let item = quote! { /// Says hello.
        #[cfg(unix)] #[inline] fn hello() {} };
        let attributes = tool_of(quote!(), item).attrs;
        assert!(attributes.iter().any(|one| one.path().is_ident("cfg")));
        assert!(!attributes.iter().any(|one| one.path().is_ident("inline")));
    }

    #[test]
    fn a_function_without_words_about_it_is_refused() {
        let message = refusal(
            quote!(),
            quote!(
                fn hello() {}
            ),
        );
        assert!(message.starts_with("a tool must have a description"));
        assert!(
            tool_function(
                quote!(description = "Says hello"),
                &syn::parse_quote!(
                    fn hello() {}
                )
            )
            .is_ok()
        );
    }

    #[test]
    fn an_async_function_is_not_blocking() {
        let message = refusal(
            quote!(blocking),
            quote! { /// Says hello.
            async fn hello() {} },
        );
        assert!(message.starts_with("`blocking` is for functions that are not `async`"));
    }

    #[test]
    fn a_refused_function_is_still_there() {
        let tokens = expand(
            quote!(),
            quote!(
                fn hello(#[arg(default)] name: String) {}
            ),
        );
        let file: syn::File = syn::parse2(tokens).expect("valid Rust");
        let expected: syn::Item = syn::parse_quote!(
            fn hello(name: String) {}
        );
        assert_eq!(file.items[0].to_token_stream().to_string(), expected.to_token_stream().to_string());
    }
}

//! Minimal parser for the annotated function.
//!
//! The body is kept as tokens: the macro does not need it, and for a body that does not parse (for example while
//! typing) the compiler reports a better error.

use proc_macro2::{Group, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Signature, Token, Visibility};

pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if !is_function(input) {
            let message = "`#[mcp_tool]` must be placed on a function or method";
            return Err(input.error(message));
        }
        let signature: Signature = input.parse()?;
        if input.peek(Token![;]) {
            let message =
                "a tool must have a body; put `#[mcp_tool]` on a method of an inherent `impl` block, not of a trait";
            return Err(syn::Error::new(signature.ident.span(), message));
        }
        Ok(Function { attributes, visibility, signature, body: input.parse()? })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Function { attributes, visibility, signature, body } = self;
        tokens.extend(quote!(#(#attributes)* #visibility #signature #body));
    }
}

/// `const` and `unsafe` also start other items, so this looks ahead for `fn`.
fn is_function(input: ParseStream) -> bool {
    let ahead = input.fork();
    while ahead.peek(Token![const])
        || ahead.peek(Token![async])
        || ahead.peek(Token![unsafe])
        || ahead.peek(Token![extern])
    {
        if ahead.parse::<proc_macro2::TokenTree>().is_err() {
            return false;
        }
        if ahead.peek(syn::LitStr) && ahead.parse::<syn::LitStr>().is_err() {
            return false;
        }
    }
    ahead.peek(Token![fn])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(tokens: TokenStream) -> String {
        match syn::parse2::<Function>(tokens) {
            Ok(_) => panic!("should have been refused"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_function_comes_back_out_as_it_went_in() {
        let tokens = quote! {
            #[inline]
            pub(crate) async unsafe extern "C" fn forecast(&self, city: String) -> u32 { not really rust }
        };
        let function: Function = syn::parse2(tokens.clone()).expect("accepted");
        assert_eq!(function.to_token_stream().to_string(), tokens.to_string());
    }

    #[test]
    fn other_items_are_refused() {
        for item in [
            quote!(
                struct Weather;
            ),
            quote!(
                const DAYS: u32 = 3;
            ),
            quote!(impl Weather {}),
            quote!(
                pub mod sky {}
            ),
        ] {
            assert!(refusal(item).starts_with("`#[mcp_tool]` must be placed on a function or method"));
        }
    }

    #[test]
    fn a_function_without_a_body_is_refused() {
        assert!(
            refusal(quote!(
                async fn forecast(&self);
            ))
            .starts_with("a tool must have a body")
        );
    }
}

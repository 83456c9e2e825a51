//! Parser for the `#[arg(...)]` helper: property attributes that the parameter type does not express.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, LitStr, Token, parenthesized};

use crate::suggestion;

const KEYS: &[&str] = &["default", "rename", "range", "length"];

#[derive(Default)]
pub(crate) struct ArgAttribute {
    pub(crate) default: Option<DefaultValue>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) range: Option<Bounds>,
    pub(crate) length: Option<Bounds>,
}

/// Value of an absent argument.
pub(crate) enum DefaultValue {
    /// `#[arg(default)]`: `Default` of the type.
    OfType,
    /// `#[arg(default = expr)]`
    Value(Box<Expr>),
}

/// `min = expr, max = expr`: inclusive bounds, at least one of them.
pub(crate) struct Bounds {
    min: Option<Expr>,
    max: Option<Expr>,
}

impl Bounds {
    /// In schemars syntax.
    pub(crate) fn to_schemars(&self) -> TokenStream {
        let min = self.min.iter().map(|min| quote!(min = #min));
        let max = self.max.iter().map(|max| quote!(max = #max));
        let ends = min.chain(max);
        quote!(#(#ends),*)
    }
}

impl Parse for ArgAttribute {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut argument = ArgAttribute::default();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            match key.to_string().as_str() {
                "default" => set(&mut argument.default, &key, DefaultValue::parse(input)?)?,
                "rename" => set(&mut argument.rename, &key, parse_rename(input)?)?,
                "range" => set(&mut argument.range, &key, Bounds::parse(&key, input)?)?,
                "length" => set(&mut argument.length, &key, Bounds::parse(&key, input)?)?,
                _ => return Err(suggestion::unknown_word_error(&key, "`#[arg]` key", KEYS)),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(argument)
    }
}

impl DefaultValue {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if !input.peek(Token![=]) {
            return Ok(DefaultValue::OfType);
        }
        input.parse::<Token![=]>()?;
        Ok(DefaultValue::Value(input.parse()?))
    }
}

impl Bounds {
    fn parse(key: &Ident, input: ParseStream) -> syn::Result<Self> {
        let usage = || syn::Error::new(key.span(), format!("`{key}` requires bounds: `{key}(min = 1, max = 50)`"));
        if !input.peek(syn::token::Paren) {
            return Err(usage());
        }
        let ends;
        parenthesized!(ends in input);
        let mut bounds = Bounds { min: None, max: None };
        for BoundArg { key, value } in Punctuated::<BoundArg, Token![,]>::parse_terminated(&ends)? {
            match key.to_string().as_str() {
                "min" => set(&mut bounds.min, &key, value)?,
                "max" => set(&mut bounds.max, &key, value)?,
                _ => return Err(suggestion::unknown_word_error(&key, "end", &["min", "max"])),
            }
        }
        if bounds.min.is_none() && bounds.max.is_none() {
            return Err(usage());
        }
        Ok(bounds)
    }
}

struct BoundArg {
    key: Ident,
    value: Expr,
}

impl Parse for BoundArg {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let key = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(BoundArg { key, value: input.parse()? })
    }
}

fn parse_rename(input: ParseStream) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    let name: LitStr = input.parse()?;
    if name.value().is_empty() {
        return Err(syn::Error::new(name.span(), "`rename` is empty; set the name of the JSON property"));
    }
    Ok(name)
}

fn set<T>(slot: &mut Option<T>, key: &Ident, value: T) -> syn::Result<()> {
    if slot.replace(value).is_some() {
        return Err(syn::Error::new(key.span(), format!("duplicate key `{key}`; keep one")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(tokens: TokenStream) -> String {
        match syn::parse2::<ArgAttribute>(tokens) {
            Ok(_) => panic!("should have been refused"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_key_is_understood() {
        let argument: ArgAttribute = syn::parse2(quote! {
            default = 3, rename = "day-count", range(min = -1, max = LIMIT), length(max = 5)
        })
        .expect("accepted");
        assert!(matches!(argument.default, Some(DefaultValue::Value(_))));
        assert_eq!(argument.rename.expect("given").value(), "day-count");
        assert_eq!(argument.range.expect("given").to_schemars().to_string(), "min = - 1 , max = LIMIT");
        assert_eq!(argument.length.expect("given").to_schemars().to_string(), "max = 5");
    }

    #[test]
    fn default_alone_means_the_types_own() {
        let argument: ArgAttribute = syn::parse2(quote!(default)).expect("accepted");
        assert!(matches!(argument.default, Some(DefaultValue::OfType)));
    }

    #[test]
    fn a_misspelt_key_is_refused_with_the_nearest_one() {
        assert_eq!(
            refusal(quote!(lenght(min = 1))),
            "unknown `#[arg]` key `lenght`; did you mean `length`? known: default, rename, range, length"
        );
        assert!(refusal(quote!(range(mix = 1))).contains("unknown end `mix`; did you mean"));
    }

    #[test]
    fn bounds_need_an_end() {
        let usage = "`range` requires bounds: `range(min = 1, max = 50)`";
        assert_eq!(refusal(quote!(range())), usage);
        assert_eq!(refusal(quote!(range = 5)), usage);
    }
}

//! Diagnostics for functions that cannot be tools, with the correction.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Receiver, ReturnType, Type};

/// Several compile errors, each with its own span.
#[derive(Default)]
pub(crate) struct Diagnostics(Option<syn::Error>);

impl Diagnostics {
    pub(crate) fn push(&mut self, outcome: syn::Result<()>) {
        if let Err(error) = outcome {
            match &mut self.0 {
                Some(first) => first.combine(error),
                None => self.0 = Some(error),
            }
        }
    }

    pub(crate) fn into_result(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Both results, or the errors of both.
pub(crate) fn combine_results<A, B>(a: syn::Result<A>, b: syn::Result<B>) -> syn::Result<(A, B)> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(mut a), Err(b)) => {
            a.combine(b);
            Err(a)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

pub(crate) fn check_function(signature: &syn::Signature) -> syn::Result<()> {
    let mut faults = Diagnostics::default();
    let generics = &signature.generics;
    let generic = match (&generics.params, &generics.where_clause) {
        (none, where_clause) if none.is_empty() => where_clause.as_ref().map(ToTokens::to_token_stream),
        (params, _) => Some(params.to_token_stream()),
    };
    if let Some(place) = generic {
        let message = "a tool function cannot be generic, because it has one schema; use concrete types";
        faults.push(Err(syn::Error::new_spanned(place, message)));
    }
    if let Some(keyword) = &signature.unsafety {
        let message = "a tool function cannot be `unsafe`, because clients send arbitrary arguments; call the unsafe \
            function from a safe function that checks them";
        faults.push(Err(syn::Error::new_spanned(keyword, message)));
    }
    if let ReturnType::Type(_, kind) = &signature.output
        && contains_ident(kind.to_token_stream(), "impl")
    {
        let message = "the output schema is derived from the return type; use a concrete type instead of `impl`";
        faults.push(Err(syn::Error::new_spanned(kind, message)));
    }
    faults.into_result()
}

pub(crate) fn check_receiver(receiver: &Receiver) -> syn::Result<()> {
    if receiver.reference.is_some() && receiver.mutability.is_none() && receiver.colon_token.is_none() {
        return Ok(());
    }
    let message = "tool calls run concurrently and share the struct; use `&self`, and keep mutable state in a `Mutex` \
        or behind a channel";
    Err(syn::Error::new_spanned(receiver, message))
}

pub(crate) fn check_type(kind: &Type) -> syn::Result<()> {
    let message = if matches!(kind, Type::Reference(_)) {
        "arguments are deserialized from JSON and must be owned; use `String` for `&str`, `Vec<T>` for `&[T]`"
    } else if contains_ident(kind.to_token_stream(), "impl") {
        "a tool function cannot be generic, because it has one schema; use a concrete type instead of `impl`"
    } else if contains_ident(kind.to_token_stream(), "Self") {
        "the arguments become a separate struct, where `Self` is a different type; use the type's name"
    } else {
        return Ok(());
    };
    Err(syn::Error::new_spanned(kind, message))
}

fn contains_ident(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => contains_ident(group.stream(), word),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use crate::signature;
    use syn::parse_quote;

    /// All messages, so that one error does not hide another.
    fn refusals(signature: syn::Signature) -> Vec<String> {
        match signature::parse_parameters(&signature) {
            Ok(_) => panic!("should have been refused"),
            Err(error) => error.into_iter().map(|one| one.to_string()).collect(),
        }
    }

    fn check(signature: syn::Signature, expected: &str) {
        let messages = refusals(signature);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains(expected), "{messages:?}");
    }

    #[test]
    fn generic_functions_are_refused() {
        check(parse_quote!(fn f<T: Clone>(a: T)), "cannot be generic");
        check(parse_quote!(fn f<'a>(a: Cow<'a, str>)), "cannot be generic");
        check(parse_quote!(fn f(a: u8) where u8: Copy), "cannot be generic");
        check(parse_quote!(fn f(a: Vec<impl Clone>)), "instead of `impl`");
        check(parse_quote!(fn f() -> impl IntoOutcome), "output schema");
    }

    #[test]
    fn only_a_shared_receiver_is_accepted() {
        check(parse_quote!(fn f(self)), "use `&self`");
        check(parse_quote!(fn f(&mut self)), "use `&self`");
        check(parse_quote!(fn f(self: Arc<Self>)), "use `&self`");
    }

    #[test]
    fn parameters_must_be_plain_and_owned() {
        check(parse_quote!(fn f((a, b): (u8, u8))), "plain name");
        check(parse_quote!(fn f(_: u8)), "plain name");
        check(parse_quote!(fn f(city: &str)), "use `String`");
        check(parse_quote!(fn f(context: &mut Context)), "must be owned");
        check(parse_quote!(fn f(&self, unit: Self::Unit)), "use the type's name");
    }

    #[test]
    fn attributes_on_parameters_are_ours_or_refused() {
        check(parse_quote!(fn f(#[serde(default)] a: u8)), "`#[arg(...)]` and `#[args]`");
        check(parse_quote!(fn f(#[arg(default)] context: Context)), "not a tool argument");
        check(parse_quote!(fn f(#[arg(default)] #[arg(rename = "b")] a: u8)), "duplicate");
        check(parse_quote!(fn f(#[args] #[arg(default)] a: Query)), "the struct's fields");
        check(parse_quote!(fn f(#[args(default)] a: Query)), "`#[args]` has no keys");
    }

    #[test]
    fn parameters_that_exclude_each_other_are_refused() {
        check(parse_quote!(fn f(a: Context, b: &Context)), "duplicate context");
        check(parse_quote!(fn f(a: u8, #[args] b: Query)), "no other argument");
        check(parse_quote!(fn f(#[args] a: Query, #[args] b: Query)), "no other argument");
        check(parse_quote!(fn f(#[arg(rename = "b")] a: u8, b: u8)), "duplicate property name `b`");
    }

    #[test]
    fn unsafe_functions_are_refused() {
        check(parse_quote!(unsafe fn f()), "cannot be `unsafe`");
    }

    #[test]
    fn all_faults_are_told_at_once() {
        assert_eq!(refusals(parse_quote!(fn f<T>(self, city: &str, (a, b): (u8, u8)))).len(), 4);
    }
}

//! The keys of `#[mcp_tool(...)]`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitBool, LitInt, LitStr, Path, Token};

use crate::suggestion;

const KEYS: &[&str] = &[
    "name",
    "title",
    "description",
    "effect",
    "read_only",
    "destructive",
    "idempotent",
    "deprecated_in",
    "timeout",
    "cache_ttl",
    "task",
    "module",
    "dialect",
    "blocking",
];

/// The parsed attribute. For an absent key, the builder's default applies.
#[derive(Default)]
pub(crate) struct ToolAttribute {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    /// A variant of `corbie_mcp::Effect`.
    pub(crate) effect: Option<Ident>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) deprecated_in: Option<LitStr>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) cache_ttl_seconds: Option<u64>,
    /// A variant of `corbie_mcp::TaskSupport`.
    pub(crate) task: Option<Ident>,
    pub(crate) module: Option<LitStr>,
    pub(crate) dialect: Option<Path>,
    /// Span of `blocking`, for the error if the function is `async`.
    pub(crate) blocking: Option<Span>,
}

impl Parse for ToolAttribute {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut attribute = ToolAttribute::default();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            attribute.parse_key(&key, input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attribute)
    }
}

impl ToolAttribute {
    fn parse_key(&mut self, key: &Ident, input: ParseStream) -> syn::Result<()> {
        match key.to_string().as_str() {
            "name" => set(&mut self.name, key, text(key, input)?),
            "title" => set(&mut self.title, key, text(key, input)?),
            "description" => set(&mut self.description, key, text(key, input)?),
            "effect" => {
                let words = [("reads", "Reads"), ("changes", "Changes"), ("destroys", "Destroys")];
                set_effect(&mut self.effect, key, enum_word(key, input, &words)?)
            }
            "read_only" => set_effect(&mut self.effect, key, Ident::new("Reads", key.span())),
            "destructive" => set_effect(&mut self.effect, key, Ident::new("Destroys", key.span())),
            "idempotent" => set(&mut self.idempotent, key, flag(input)?),
            "deprecated_in" => set(&mut self.deprecated_in, key, text(key, input)?),
            "timeout" => {
                let seconds = seconds(key, input)?;
                if seconds == 0 {
                    let message = "`timeout = 0` would end every call; use at least 1, or remove the key";
                    return Err(syn::Error::new(key.span(), message));
                }
                set(&mut self.timeout_seconds, key, seconds)
            }
            "cache_ttl" => set(&mut self.cache_ttl_seconds, key, seconds(key, input)?),
            "task" => {
                let words =
                    [("never", "Never"), ("optional", "Optional"), ("always", "Always"), ("handoff", "Handoff")];
                set(&mut self.task, key, enum_word(key, input, &words)?)
            }
            "module" => set(&mut self.module, key, text(key, input)?),
            "dialect" => {
                input.parse::<Token![=]>()?;
                set(&mut self.dialect, key, input.parse()?)
            }
            "blocking" => set(&mut self.blocking, key, key.span()),
            _ => Err(suggestion::unknown_word_error(key, "`#[mcp_tool]` key", KEYS)),
        }
    }
}

fn set<T>(slot: &mut Option<T>, key: &Ident, value: T) -> syn::Result<()> {
    if slot.replace(value).is_some() {
        return Err(syn::Error::new(key.span(), format!("duplicate key `{key}`; keep one")));
    }
    Ok(())
}

fn set_effect(slot: &mut Option<Ident>, key: &Ident, variant: Ident) -> syn::Result<()> {
    if slot.replace(variant).is_some() {
        let message = "duplicate effect; keep one of `effect = ...`, `read_only` and `destructive`";
        return Err(syn::Error::new(key.span(), message));
    }
    Ok(())
}

fn text(key: &Ident, input: ParseStream) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    let text: LitStr = input
        .parse()
        .map_err(|error| syn::Error::new(error.span(), format!("`{key}` must be a string: `{key} = \"...\"`")))?;
    if text.value().trim().is_empty() {
        let message = format!("`{key}` is empty; add text, or remove the key");
        return Err(syn::Error::new(text.span(), message));
    }
    Ok(text)
}

fn seconds(key: &Ident, input: ParseStream) -> syn::Result<u64> {
    input.parse::<Token![=]>()?;
    input.parse::<LitInt>().and_then(|number| number.base10_parse()).map_err(|error| {
        let message = format!("`{key}` must be an integer number of seconds: `{key} = 30`");
        syn::Error::new(error.span(), message)
    })
}

/// `key` alone means true; `key = false` is for generated code.
fn flag(input: ParseStream) -> syn::Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitBool>()?.value)
}

/// Parses one of several bare words into an enum variant.
fn enum_word(key: &Ident, input: ParseStream, words: &[(&str, &str)]) -> syn::Result<Ident> {
    input.parse::<Token![=]>()?;
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let found = input.call(Ident::parse_any).map_err(|error| {
        let message = format!("`{key}` must be one of the identifiers: {}", known.join(", "));
        syn::Error::new(error.span(), message)
    })?;
    match words.iter().find(|(word, _)| found == word) {
        Some((_, variant)) => Ok(Ident::new(variant, found.span())),
        None => Err(suggestion::unknown_word_error(&found, &format!("{key}"), &known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn parse(tokens: proc_macro2::TokenStream) -> ToolAttribute {
        syn::parse2(tokens).expect("accepted")
    }

    fn refusal(tokens: proc_macro2::TokenStream) -> String {
        match syn::parse2::<ToolAttribute>(tokens) {
            Ok(_) => panic!("should have been refused"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_key_is_understood() {
        let attribute = parse(quote! {
            name = "weather", title = "Weather", description = "Tells the weather", effect = changes, idempotent,
            deprecated_in = "1.2", timeout = 5, cache_ttl = 0, task = optional, module = "sky",
            dialect = dialects::STRICT, blocking,
        });
        assert_eq!(attribute.name.expect("given").value(), "weather");
        assert_eq!(attribute.title.expect("given").value(), "Weather");
        assert_eq!(attribute.description.expect("given").value(), "Tells the weather");
        assert_eq!(attribute.effect.expect("given"), "Changes");
        assert_eq!(attribute.idempotent, Some(true));
        assert_eq!(attribute.deprecated_in.expect("given").value(), "1.2");
        assert_eq!(attribute.timeout_seconds, Some(5));
        assert_eq!(attribute.cache_ttl_seconds, Some(0));
        assert_eq!(attribute.task.expect("given"), "Optional");
        assert_eq!(attribute.module.expect("given").value(), "sky");
        assert!(attribute.dialect.is_some());
        assert!(attribute.blocking.is_some());
    }

    #[test]
    fn every_documented_key_is_accepted() {
        for key in KEYS {
            let key = Ident::new(key, Span::call_site());
            let values = [quote!(), quote!(= "text"), quote!(= 5), quote!(= reads), quote!(= never)];
            let accepted = |value| syn::parse2::<ToolAttribute>(quote!(#key #value)).is_ok();
            assert!(values.into_iter().any(accepted), "`{key}` is listed but never accepted");
        }
    }

    #[test]
    fn short_forms_stand_for_effects() {
        assert_eq!(parse(quote!(destructive)).effect.expect("given"), "Destroys");
        assert_eq!(parse(quote!(read_only)).effect.expect("given"), "Reads");
    }

    #[test]
    fn nothing_in_the_parentheses_chooses_nothing() {
        let attribute = parse(quote!());
        assert!(attribute.effect.is_none() && attribute.idempotent.is_none() && attribute.task.is_none());
    }

    #[test]
    fn a_misspelt_key_is_refused_with_the_nearest_one() {
        let message = refusal(quote!(tiemout = 5));
        assert!(message.starts_with("unknown `#[mcp_tool]` key `tiemout`; did you mean `timeout`? known: name,"));
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused_with_an_example() {
        assert_eq!(refusal(quote!(timeout = "5s")), "`timeout` must be an integer number of seconds: `timeout = 30`");
        assert_eq!(refusal(quote!(name = weather)), "`name` must be a string: `name = \"...\"`");
        assert_eq!(
            refusal(quote!(effect = "reads")),
            "`effect` must be one of the identifiers: reads, changes, destroys"
        );
        assert_eq!(
            refusal(quote!(task = nevr)),
            "unknown task `nevr`; did you mean `never`? known: never, optional, always, handoff"
        );
    }

    #[test]
    fn a_key_is_given_once() {
        assert_eq!(refusal(quote!(timeout = 5, timeout = 6)), "duplicate key `timeout`; keep one");
        assert!(refusal(quote!(read_only, destructive)).contains("duplicate effect"));
    }

    #[test]
    fn values_that_mean_nothing_are_refused() {
        assert!(refusal(quote!(timeout = 0)).contains("would end every call"));
        assert!(refusal(quote!(description = " ")).contains("`description` is empty"));
    }
}

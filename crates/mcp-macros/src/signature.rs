//! Parses the parameters of the function: properties, context, or the whole input.

use std::collections::HashSet;

use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Ident, LitStr, Meta, Pat, PatType, Type};

use crate::arg_attribute::ArgAttribute;
use crate::description;
use crate::diagnostics::{self, Diagnostics};

/// Parameters of a tool function.
pub(crate) struct Parameters {
    pub(crate) is_method: bool,
    /// In declaration order, after `self`.
    pub(crate) in_order: Vec<Parameter>,
}

pub(crate) enum Parameter {
    Context,
    BorrowedContext,
    Property(Box<Property>),
    /// `#[args]`: the type of the whole input.
    Struct(Box<Type>),
}

pub(crate) struct Property {
    pub(crate) ident: Ident,
    pub(crate) kind: Box<Type>,
    pub(crate) description: Option<String>,
    pub(crate) argument: ArgAttribute,
}

/// Source of the schema. `#[args]` and single properties exclude each other, because both define the top level.
pub(crate) enum InputSource<'a> {
    Empty,
    Properties(Vec<&'a Property>),
    Struct(&'a Type),
}

/// Parses the parameters and reports all errors together.
pub(crate) fn parse_parameters(signature: &syn::Signature) -> syn::Result<Parameters> {
    let mut faults = Diagnostics::default();
    faults.push(diagnostics::check_function(signature));
    let mut is_method = false;
    let mut parameters = Vec::new();
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                is_method = true;
                faults.push(diagnostics::check_receiver(receiver));
            }
            FnArg::Typed(written) => match read_parameter(written) {
                Ok(parameter) => parameters.push((written, parameter)),
                Err(error) => faults.push(Err(error)),
            },
        }
    }
    faults.push(check_combination(&parameters));
    faults.into_result()?;
    let in_order = parameters.into_iter().map(|(_, parameter)| parameter).collect();
    Ok(Parameters { is_method, in_order })
}

/// Removes the macro's own attributes, so that the compiler accepts the function.
pub(crate) fn strip_helper_attributes(signature: &mut syn::Signature) {
    for input in &mut signature.inputs {
        if let FnArg::Typed(parameter) = input {
            parameter.attrs.retain(is_lint);
        }
    }
}

impl Parameters {
    pub(crate) fn input_source(&self) -> InputSource<'_> {
        let mut properties = Vec::new();
        for parameter in &self.in_order {
            match parameter {
                Parameter::Struct(kind) => return InputSource::Struct(kind),
                Parameter::Property(property) => properties.push(&**property),
                Parameter::Context | Parameter::BorrowedContext => {}
            }
        }
        if properties.is_empty() { InputSource::Empty } else { InputSource::Properties(properties) }
    }
}

impl Property {
    pub(crate) fn wire_name(&self) -> String {
        match &self.argument.rename {
            Some(name) => name.value(),
            None => self.ident.unraw().to_string(),
        }
    }
}

fn read_parameter(parameter: &PatType) -> syn::Result<Parameter> {
    let ident = read_name(&parameter.pat)?;
    let helpers = read_helpers(&parameter.attrs)?;
    let kind = &parameter.ty;
    let context = match &**kind {
        Type::Reference(reference) if reference.mutability.is_none() && is_context(&reference.elem) => {
            Some(Parameter::BorrowedContext)
        }
        kind if is_context(kind) => Some(Parameter::Context),
        _ => None,
    };
    if let Some(context) = context {
        return match helpers.first {
            Some(helper) => {
                let message = "the context is not a tool argument; remove this attribute";
                Err(syn::Error::new_spanned(helper, message))
            }
            None => Ok(context),
        };
    }
    diagnostics::check_type(kind)?;
    match (helpers.is_struct, helpers.argument) {
        (true, None) => Ok(Parameter::Struct(kind.clone())),
        (true, Some(_)) => {
            let message = "`#[args]` is for the whole struct; move `#[arg]` to the struct's fields";
            Err(syn::Error::new_spanned(helpers.first, message))
        }
        (false, argument) => Ok(Parameter::Property(Box::new(Property {
            ident,
            kind: kind.clone(),
            description: description::doc_text(&parameter.attrs),
            argument: argument.unwrap_or_default(),
        }))),
    }
}

fn read_name(pattern: &Pat) -> syn::Result<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Ok(name.ident.clone()),
        other => {
            let message =
                "a parameter needs a plain name, because it is the name of the property; destructure it in the body";
            Err(syn::Error::new_spanned(other, message))
        }
    }
}

struct HelperAttributes<'a> {
    argument: Option<ArgAttribute>,
    is_struct: bool,
    first: Option<&'a Attribute>,
}

fn read_helpers(attributes: &[Attribute]) -> syn::Result<HelperAttributes<'_>> {
    let mut helpers = HelperAttributes { argument: None, is_struct: false, first: None };
    for attribute in attributes {
        if attribute.path().is_ident("arg") {
            if helpers.argument.replace(attribute.parse_args()?).is_some() {
                return Err(syn::Error::new_spanned(attribute, "duplicate `#[arg]`; merge the keys into one"));
            }
        } else if attribute.path().is_ident("args") {
            if !matches!(attribute.meta, Meta::Path(_)) {
                let message = "`#[args]` has no keys; for a single property use `#[arg(...)]`";
                return Err(syn::Error::new_spanned(attribute, message));
            }
            helpers.is_struct = true;
        } else if is_lint(attribute) || attribute.path().is_ident("doc") {
            continue;
        } else {
            let message = "only `/// text`, `#[arg(...)]` and `#[args]` are allowed on a parameter; for other \
                attributes use one struct with `#[args]` and put them on its fields";
            return Err(syn::Error::new_spanned(attribute, message));
        }
        helpers.first = helpers.first.or(Some(attribute));
    }
    Ok(helpers)
}

fn is_lint(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|lint| attribute.path().is_ident(lint))
}

/// Matches by name, because macros do not see types. If it is a different `Context`, the compiler rejects the call.
fn is_context(kind: &Type) -> bool {
    match kind {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Context"),
        _ => false,
    }
}

/// Checks for invalid combinations of parameters.
fn check_combination(parameters: &[(&PatType, Parameter)]) -> syn::Result<()> {
    let mut faults = Diagnostics::default();
    let (contexts, inputs): (Vec<_>, Vec<_>) = parameters
        .iter()
        .partition(|(_, parameter)| matches!(parameter, Parameter::Context | Parameter::BorrowedContext));
    for (written, _) in contexts.iter().skip(1) {
        faults.push(Err(syn::Error::new_spanned(&written.ty, "duplicate context parameter; remove it")));
    }
    if let Some(whole) = inputs.iter().position(|(_, parameter)| matches!(parameter, Parameter::Struct(_))) {
        let message = "`#[args]` is the whole input, so no other argument is allowed; make this a field of that struct";
        for (_, (written, _)) in inputs.iter().enumerate().filter(|(position, _)| *position != whole) {
            faults.push(Err(syn::Error::new_spanned(&written.pat, message)));
        }
    }
    let mut names = HashSet::new();
    for (_, parameter) in inputs {
        if let Parameter::Property(property) = parameter
            && !names.insert(property.wire_name())
        {
            let place = property.argument.rename.as_ref().map_or(property.ident.span(), LitStr::span);
            let message = format!("duplicate property name `{}`; rename one of them", property.wire_name());
            faults.push(Err(syn::Error::new(place, message)));
        }
    }
    faults.into_result()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::parse_quote;

    /// One word per parameter kind, in order.
    fn check(signature: syn::Signature, expected: &str) {
        let parameters = parse_parameters(&signature).expect("accepted");
        let words: Vec<String> = parameters
            .in_order
            .iter()
            .map(|parameter| match parameter {
                Parameter::Context => "context".to_owned(),
                Parameter::BorrowedContext => "&context".to_owned(),
                Parameter::Property(property) => property.wire_name(),
                Parameter::Struct(_) => "whole".to_owned(),
            })
            .collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn parameters_are_read_in_the_order_of_the_call() {
        check(parse_quote!(fn f(a: u8, context: Context, mut b: Option<String>)), "a context b");
        check(parse_quote!(fn f(&self, cx: &corbie_mcp::Context, #[args] input: Query)), "&context whole");
        check(parse_quote!(fn f(r#type: String, #[arg(rename = "city-name")] city: String)), "type city-name");
        check(parse_quote!(fn f()), "");
    }

    #[test]
    fn only_a_receiver_makes_a_method() {
        assert!(parse_parameters(&parse_quote!(fn f(&self))).expect("accepted").is_method);
        assert!(!parse_parameters(&parse_quote!(fn f(city: String))).expect("accepted").is_method);
    }

    #[test]
    fn the_context_is_no_input() {
        assert!(matches!(
            parse_parameters(&parse_quote!(fn f(context: Context))).expect("accepted").input_source(),
            InputSource::Empty
        ));
        assert!(matches!(
            parse_parameters(&parse_quote!(fn f(#[args] q: Query, c: Context))).expect("accepted").input_source(),
            InputSource::Struct(_)
        ));
        assert!(
            matches!(parse_parameters(&parse_quote!(fn f(a: u8, b: u8))).expect("accepted").input_source(), InputSource::Properties(two) if two.len() == 2)
        );
    }

    #[test]
    fn a_doc_comment_is_the_description_of_its_property() {
        let signature = parse_quote! {
            fn f(
                /// City name,
                /// as written there
                city: String
            )
        };
        let parameters = parse_parameters(&signature).expect("accepted");
        match parameters.input_source() {
            InputSource::Properties(properties) => {
                assert_eq!(properties[0].description.as_deref(), Some("City name, as written there"));
            }
            _ => panic!("one property expected"),
        }
    }

    #[test]
    fn stripping_leaves_what_the_compiler_understands() {
        let mut signature: syn::Signature = parse_quote! {
            fn f(
                /// City name
                #[arg(default)]
                #[allow(unused)]
                city: String,
                #[args] query: Query
            )
        };
        strip_helper_attributes(&mut signature);
        let expected: syn::Signature = parse_quote!(fn f(#[allow(unused)] city: String, query: Query));
        assert_eq!(signature.to_token_stream().to_string(), expected.to_token_stream().to_string());
    }
}

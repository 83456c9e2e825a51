//! Resources readable by URI, fixed or by template.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::content::ResourceContents;
use crate::context::Context;
use crate::error::{Error, RegistrationError};

/// A resource with a fixed URI.
#[derive(Clone)]
pub struct Resource {
    pub(crate) uri: String,
    listing: Map<String, Value>,
    pub(crate) read: ReadHandler,
}

/// A family of resources, such as `knowledge://documents/{id}`.
#[derive(Clone)]
pub struct ResourceTemplate {
    pub(crate) uri_template: String,
    parts: Vec<TemplatePart>,
    listing: Map<String, Value>,
    pub(crate) read: ReadHandler,
}

/// The values of a template's variables; empty for a fixed resource.
pub type Variables = HashMap<String, String>;

pub(crate) type ReadHandler =
    Arc<dyn Fn(Context, String, Variables) -> BoxFuture<'static, Result<Vec<ResourceContents>, Error>> + Send + Sync>;

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Literal(String),
    /// Matches one path segment: everything up to the next literal, without `/`.
    Variable(String),
}

fn read_handler<F, Fut>(read: F) -> ReadHandler
where
    F: Fn(Context, String, Variables) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<ResourceContents>, Error>> + Send + 'static,
{
    let read = Arc::new(read);
    Arc::new(move |context, uri, variables| {
        let read = read.clone();
        Box::pin(async move { read(context, uri, variables).await })
    })
}

impl Resource {
    /// A resource with content produced on each read.
    pub fn new<F, Fut>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Resource
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<ResourceContents>, Error>> + Send + 'static,
    {
        let uri = uri.into();
        let mut listing = Map::new();
        listing.insert("uri".into(), uri.as_str().into());
        listing.insert("name".into(), name.into().into());
        Resource { uri, listing, read: read_handler(move |context, _, _| read(context)) }
    }

    /// A resource with a fixed text.
    pub fn text(
        uri: impl Into<String>,
        name: impl Into<String>,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Resource {
        let (uri, mime_type) = (uri.into(), mime_type.into());
        let contents = vec![ResourceContents::text(&uri, &mime_type, text)];
        Resource::new(uri, name, move |_| std::future::ready(Ok(contents.clone()))).mime_type(mime_type)
    }

    pub fn title(self, title: impl Into<String>) -> Resource {
        self.member("title", title.into())
    }

    pub fn description(self, description: impl Into<String>) -> Resource {
        self.member("description", description.into())
    }

    pub fn mime_type(self, mime_type: impl Into<String>) -> Resource {
        self.member("mimeType", mime_type.into())
    }

    /// Sets an additional member of the listing, such as `size` or `annotations`.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Resource {
        self.listing.insert(name.into(), value.into());
        self
    }

    pub fn listing(&self) -> Value {
        Value::Object(self.listing.clone())
    }
}

impl ResourceTemplate {
    /// `read` gets the requested URI and the values of the template's variables.
    pub fn new<F, Fut>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Result<ResourceTemplate, RegistrationError>
    where
        F: Fn(Context, String, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<ResourceContents>, Error>> + Send + 'static,
    {
        let uri_template = uri_template.into();
        let parts = parse_template(&uri_template).map_err(|reason| RegistrationError::InvalidTemplate {
            template: uri_template.clone(),
            reason: reason.into(),
        })?;
        let mut listing = Map::new();
        listing.insert("uriTemplate".into(), uri_template.as_str().into());
        listing.insert("name".into(), name.into().into());
        Ok(ResourceTemplate { uri_template, parts, listing, read: read_handler(read) })
    }

    pub fn description(self, description: impl Into<String>) -> ResourceTemplate {
        self.member("description", description.into())
    }

    pub fn mime_type(self, mime_type: impl Into<String>) -> ResourceTemplate {
        self.member("mimeType", mime_type.into())
    }

    pub fn member(mut self, name: &str, value: impl Into<Value>) -> ResourceTemplate {
        self.listing.insert(name.into(), value.into());
        self
    }

    pub fn listing(&self) -> Value {
        Value::Object(self.listing.clone())
    }

    /// The variables' values if the URI matches this template.
    pub(crate) fn matches(&self, uri: &str) -> Option<Variables> {
        let mut variables = Variables::new();
        let mut rest = uri;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                TemplatePart::Variable(name) => {
                    let end = match self.parts.get(index + 1) {
                        Some(TemplatePart::Literal(next)) => rest.find(next.as_str())?,
                        _ => rest.len(),
                    };
                    let (value, after) = rest.split_at(end);
                    if value.is_empty() || value.contains('/') {
                        return None;
                    }
                    variables.insert(name.clone(), value.to_owned());
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(variables)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resource").field(&self.uri).finish()
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResourceTemplate").field(&self.uri_template).finish()
    }
}

/// Parses simple `{name}` expressions, the subset of RFC 6570 that can be matched unambiguously.
fn parse_template(template: &str) -> Result<Vec<TemplatePart>, &'static str> {
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let Some(open) = rest.find('{') else {
            parts.push(TemplatePart::Literal(rest.to_owned()));
            break;
        };
        if open > 0 {
            parts.push(TemplatePart::Literal(rest[..open].to_owned()));
        } else if matches!(parts.last(), Some(TemplatePart::Variable(_))) {
            return Err("there must be text between two variables");
        }
        let close = rest.find('}').ok_or("unclosed `{`")?;
        let name = rest.get(open + 1..close).unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err("a variable name may contain only letters, digits and `_`");
        }
        parts.push(TemplatePart::Variable(name.to_owned()));
        rest = &rest[close + 1..];
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Result<ResourceTemplate, RegistrationError> {
        ResourceTemplate::new(text, "t", async |_, _, _| Ok(vec![]))
    }

    #[test]
    fn a_template_matches_whole_segments_only() {
        let template = template("test://template/{id}/data").expect("valid");
        assert_eq!(template.matches("test://template/123/data"), Some(Variables::from([("id".into(), "123".into())])));
        for other in ["test://template//data", "test://template/1/2/data", "test://template/1/data/x", "test://else"] {
            assert_eq!(template.matches(other), None, "{other}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_matched_is_refused() {
        for bad in ["x://{a}{b}", "x://{", "x://{}", "x://{a*}"] {
            assert!(template(bad).is_err(), "{bad}");
        }
    }
}

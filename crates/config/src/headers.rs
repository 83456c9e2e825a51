//! Configured headers for outgoing requests.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::secret::SecretLine;

/// Headers that the protocol sets. A second value would break it or be ambiguous.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// A header name that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderNameError {
    #[error("is not a valid header name; use letters, digits and `-`")]
    Name(String),
    #[error("is set by the protocol; remove it")]
    Reserved(String),
}

/// The headers as a map. Their values are marked as sensitive.
pub fn header_map(headers: &BTreeMap<String, SecretLine>) -> Result<HeaderMap, HeaderNameError> {
    let ready = headers.iter().map(|(name, line)| {
        let key: HeaderName = name.parse().map_err(|_| HeaderNameError::Name(name.clone()))?;
        if RESERVED.contains(&key.as_str()) {
            return Err(HeaderNameError::Reserved(name.clone()));
        }
        // Values are validated when they are parsed. If one is invalid anyway, the error names its header.
        let mut value = HeaderValue::from_str(line.expose()).map_err(|_| HeaderNameError::Name(name.clone()))?;
        value.set_sensitive(true);
        Ok((key, value))
    });
    ready.collect()
}

impl HeaderNameError {
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Reserved(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(name: &str) -> Result<HeaderMap, HeaderNameError> {
        header_map(&[(name.to_owned(), SecretLine::new("Bearer sk-1"))].into())
    }

    #[test]
    fn f26_a_header_keeps_its_value_and_shows_it_nowhere() {
        let headers = map("Authorization").unwrap();
        assert_eq!(headers["authorization"], "Bearer sk-1");
        assert!(!format!("{headers:?}").contains("sk-1"));
    }

    #[test]
    fn f26_names_that_cannot_be_sent_are_told() {
        assert_eq!(map("a b"), Err(HeaderNameError::Name("a b".into())));
        assert_eq!(map("Content-Length"), Err(HeaderNameError::Reserved("Content-Length".into())));
    }
}

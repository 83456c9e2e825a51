//! Protected resource metadata (RFC 9728) and the `WWW-Authenticate` challenge that refers to it.

use corbie_mcp::TrustLevel;
use serde_json::json;

use crate::config::oauth::OAuth;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata document as JSON.
pub(super) fn document(settings: &OAuth, name: &str) -> String {
    let mut document = json!({
        "resource": settings.resource.as_str(),
        "resource_name": name,
        "authorization_servers": [settings.issuer.as_str()],
        "bearer_methods_supported": ["header"],
    });
    if !settings.scopes.is_empty() {
        document["scopes_supported"] = settings.scopes.keys().map(String::as_str).collect();
    }
    document.to_string()
}

/// Parameters of `WWW-Authenticate`: the URL of the metadata and the required scopes.
pub(super) fn challenge<'a>(settings: &OAuth, scopes: impl Iterator<Item = &'a str>) -> String {
    let url = settings.resource.url();
    let path = url.path().trim_end_matches('/');
    let mut challenge = format!("resource_metadata=\"{}{WELL_KNOWN}{path}\"", url.origin().ascii_serialization());
    let scopes: Vec<&str> = scopes.collect();
    if !scopes.is_empty() {
        challenge.push_str(&format!(", scope=\"{}\"", scopes.join(" ")));
    }
    challenge
}

/// The scopes of the next higher trust level. If that is not sufficient, the next response names higher ones.
pub(super) fn next_level_scopes(scopes: &[(String, TrustLevel)], has: TrustLevel) -> Vec<&str> {
    let next = scopes.iter().map(|(_, level)| *level).filter(|level| *level > has).min();
    scopes.iter().filter(|(_, level)| Some(*level) == next).map(|(scope, _)| scope.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(resource: &str) -> OAuth {
        let settings = json!({
            "issuer": "https://login.example", "resource": resource, "scopes": {"read": "untrusted", "write": "verified"},
        });
        serde_json::from_value(settings).expect("settings")
    }

    #[test]
    fn s05_the_challenge_leads_to_the_document() {
        for (resource, place) in [
            ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example:8443", "https://a.example:8443/.well-known/oauth-protected-resource"),
            ("http://[::1]:80/x/mcp/", "http://[::1]/.well-known/oauth-protected-resource/x/mcp"),
        ] {
            let settings = settings(resource);
            let scopes = settings.scopes.keys().map(String::as_str);
            let wanted = format!("resource_metadata=\"{place}\", scope=\"read write\"");
            assert_eq!(challenge(&settings, scopes), wanted);
            assert_eq!(challenge(&settings, [].into_iter()), format!("resource_metadata=\"{place}\""));
        }
    }

    #[test]
    fn s05_whoever_lacks_trust_is_told_of_the_next_level() {
        let scopes = [
            ("admin".to_owned(), TrustLevel::Trusted),
            ("read".to_owned(), TrustLevel::Untrusted),
            ("write".to_owned(), TrustLevel::Verified),
        ];
        assert_eq!(next_level_scopes(&scopes, TrustLevel::Untrusted), ["write"]);
        assert_eq!(next_level_scopes(&scopes, TrustLevel::Verified), ["admin"]);
        assert!(next_level_scopes(&scopes, TrustLevel::Trusted).is_empty());
    }
}

//! JWT validation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{OAuthServer, RESOURCE, claims, claims_with};
use crate::issuer::{Issuer, KEYS_PATH};
use crate::process::wait_for;
use crate::signer::{Signer, encode, hmac_token, unix_seconds};

#[test]
fn s05_a_good_token_passes_with_the_trust_of_its_scopes() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::start(&issuer);
    for (more, trust) in [
        (json!({}), "VERIFIED"),
        (json!({ "scope": "corbie:read" }), "UNTRUSTED"),
        (json!({ "scope": "corbie:admin corbie:read" }), "TRUSTED"),
        (json!({ "scope": "corbie" }), "UNTRUSTED"),
        (json!({ "scope": null }), "UNTRUSTED"),
        (json!({ "scope": null, "scp": ["corbie:write", "other"] }), "VERIFIED"),
        (json!({ "scope": ["corbie:admin"] }), "TRUSTED"),
        (json!({ "aud": ["https://other.example", RESOURCE] }), "VERIFIED"),
        (json!({ "iat": null, "jti": null, "client_id": null }), "VERIFIED"),
        (json!({ "nbf": unix_seconds(-1), "exp": unix_seconds(60) }), "VERIFIED"),
        (json!({ "exp": unix_seconds(-30) }), "VERIFIED"),
        (json!({ "nbf": unix_seconds(30), "iat": unix_seconds(30) }), "VERIFIED"),
        (json!({ "exp": unix_seconds(600) as f64 + 0.5 }), "VERIFIED"),
    ] {
        assert_eq!(served.trust(&key.token(&claims_with(&issuer, more.clone()))), trust, "{more}");
    }
    for kind in [json!("JWT"), json!("jwt"), json!("application/at+jwt"), Value::Null] {
        assert_eq!(served.trust(&key.token_with(json!({ "typ": kind }), &claims(&issuer))), "VERIFIED");
    }
    assert_eq!(served.trust(&key.token_with(json!({ "kid": null }), &claims(&issuer))), "VERIFIED", "the only key");
    assert_eq!(issuer.request_count(KEYS_PATH), 1, "keys are fetched once");
}

#[test]
fn s05_every_way_to_sign_is_known() {
    let ways = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
    let keys: Vec<Signer> = ways.iter().map(|way| Signer::new(way, way)).collect();
    let issuer = Issuer::start(&keys.iter().collect::<Vec<_>>());
    let served = OAuthServer::start(&issuer);
    for key in &keys {
        assert_eq!(served.trust(&key.token(&claims(&issuer))), "VERIFIED", "{}", key.algorithm);
    }
}

#[test]
fn s05_a_way_to_sign_that_the_operator_does_not_want_is_refused() {
    let (curve, edwards) = (Signer::new("one", "ES256"), Signer::new("two", "EdDSA"));
    let issuer = Issuer::start(&[&curve, &edwards]);
    let served = OAuthServer::with(&issuer, json!({ "algorithms": ["EdDSA"] }));
    assert_eq!(
        served.rejection_message(&curve.token(&claims(&issuer))),
        "signature algorithm of the token is not allowed"
    );
    assert_eq!(served.trust(&edwards.token(&claims(&issuer))), "VERIFIED");
}

#[test]
fn s05_what_a_bad_token_says_of_itself_does_not_help_it() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::start(&issuer);
    for (more, why) in [
        (json!({ "aud": "https://other.example/mcp" }), "token audience does not match"),
        (json!({ "aud": [] }), "token audience does not match"),
        (json!({ "aud": null }), "token audience does not match"),
        (json!({ "aud": format!("{RESOURCE}/") }), "token audience does not match"),
        (json!({ "aud": RESOURCE.to_uppercase() }), "token audience does not match"),
        (json!({ "aud": { "0": RESOURCE } }), "token audience does not match"),
        (json!({ "iss": "https://evil.example" }), "unknown token issuer"),
        (json!({ "iss": format!("{}/", issuer.url) }), "unknown token issuer"),
        (json!({ "iss": [issuer.url] }), "token is not a valid signed JWT"),
        (json!({ "iss": null }), "token is not a valid signed JWT"),
        (json!({ "exp": unix_seconds(-120) }), "token has expired"),
        (json!({ "exp": 0 }), "token has expired"),
        (json!({ "exp": null }), "token is not a valid signed JWT"),
        (json!({ "exp": (unix_seconds(600)).to_string() }), "token is not a valid signed JWT"),
        (json!({ "exp": -1 }), "token has no expiration time (`exp`)"),
        (json!({ "nbf": unix_seconds(120) }), "token is not valid yet"),
        (json!({ "nbf": "tomorrow" }), "token is not a valid signed JWT"),
        (json!({ "iat": unix_seconds(120) }), "token is not valid yet"),
        (json!({ "sub": null, "client_id": null }), "token has no subject"),
        (json!({ "sub": 7 }), "token is not a valid signed JWT"),
    ] {
        assert_eq!(served.rejection_message(&key.token(&claims_with(&issuer, more.clone()))), why, "{more}");
    }
    let other = OAuthServer::with(&issuer, json!({ "audiences": ["api://corbie"], "clock_skew": 0 }));
    assert_eq!(other.trust(&key.token(&claims_with(&issuer, json!({ "aud": "api://corbie" })))), "VERIFIED");
    assert_eq!(
        other.rejection_message(&key.token(&claims_with(&issuer, json!({ "exp": unix_seconds(-30) })))),
        "token has expired"
    );
}

#[test]
fn s05_a_token_must_be_signed_and_by_the_key_it_names() {
    let (curve, rsa) = (Signer::new("curve", "ES256"), Signer::new("rsa", "RS256"));
    let issuer = Issuer::start(&[&curve, &rsa]);
    let served = OAuthServer::start(&issuer);
    let good = rsa.token(&claims(&issuer));
    let [head, body, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
    assert_eq!(served.trust(&good), "VERIFIED");

    let none = |alg: &str| {
        let head = encode(json!({ "alg": alg, "typ": "at+jwt", "kid": "rsa" }).to_string().as_bytes());
        format!("{head}.{body}.")
    };
    let raised = encode(claims_with(&issuer, json!({ "scope": "corbie:admin" })).to_string().as_bytes());
    let mut flipped = signature.to_owned().into_bytes();
    flipped[40] = if flipped[40] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let stranger = Signer::new("curve", "ES256");
    let unread = "token is not a valid signed JWT";
    let unsigned = "invalid token signature";
    let unfit = "token is signed with a key that is not intended for this algorithm or use";
    for (what, token, why) in [
        ("none", none("none"), unread),
        ("None", none("None"), unread),
        ("nOnE", none("nOnE"), unread),
        ("no signature", format!("{head}.{body}."), unsigned),
        ("no signature, no dot", format!("{head}.{body}"), unread),
        ("another body", format!("{head}.{raised}.{signature}"), unsigned),
        ("another signature", format!("{head}.{body}.{flipped}"), unsigned),
        ("half a signature", format!("{head}.{body}.{}", &signature[..100]), unsigned),
        ("a part more", format!("{good}.{signature}"), unread),
        ("five parts", format!("{head}.{body}.{signature}.a.b"), unread),
        ("padding", format!("{good}="), unread),
        ("a key that calls itself like another", stranger.token(&claims(&issuer)), unsigned),
        ("the head of RSA, the key of a curve", curve.token_with(json!({ "alg": "RS256" }), &claims(&issuer)), unfit),
        ("RSA says it is of a curve", rsa.token_with(json!({ "alg": "ES256" }), &claims(&issuer)), unfit),
        ("another name for the same key", rsa.token_with(json!({ "alg": "PS256" }), &claims(&issuer)), unsigned),
        ("the other key", curve.token_with(json!({ "kid": "rsa" }), &claims(&issuer)), unfit),
        ("no words", "...".into(), unread),
        ("one word", "opaque-token".into(), unread),
    ] {
        assert_eq!(served.rejection_message(&token), why, "{what}");
    }
    assert_eq!(served.trust(&good), "VERIFIED");
}

/// Each token names a published key, so only its signature tells that it is forged.
#[test]
fn s05_s09_a_flood_of_forged_tokens_has_few_signatures_checked_and_locks_out_no_valid_one() {
    const FORGERS: usize = 32;
    const FLOOD: Duration = Duration::from_secs(4);
    let (key, stranger) = (Signer::new("one", "ES256"), Signer::new("one", "ES256"));
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::start(&issuer);
    assert_eq!(served.trust(&key.token(&claims(&issuer))), "VERIFIED", "the keys are fetched");
    let (began, checked) = (Instant::now(), AtomicUsize::new(0));
    let forged = stranger.token(&claims(&issuer));
    std::thread::scope(|scope| {
        let (caller, checked, forged) = (served.caller, &checked, &forged);
        for _ in 0..FORGERS {
            scope.spawn(move || {
                while began.elapsed() < FLOOD {
                    if caller.inspect(forged).status == 401 {
                        checked.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let is_over = || (checked.load(Ordering::Relaxed) > 250).then_some(());
        wait_for("the signature checks of this address to be used up", is_over);
        for number in 0..5 {
            let token = key.token(&claims_with(&issuer, json!({ "jti": number.to_string() })));
            assert_eq!(served.trust(&token), "VERIFIED", "{number}");
        }
    });
    let (checked, seconds) = (checked.into_inner(), began.elapsed().as_secs() as usize + 1);
    assert!((200..=200 + 100 * seconds).contains(&checked), "{checked} in {seconds} s");
}

/// The public key is public. As an HMAC secret, it would let anyone sign (algorithm confusion).
#[test]
fn s05_a_public_key_is_never_taken_for_a_secret() {
    let (curve, rsa) = (Signer::new("curve", "ES256"), Signer::new("rsa", "RS256"));
    let issuer = Issuer::start(&[&curve, &rsa]);
    let served = OAuthServer::start(&issuer);
    for key in [&curve, &rsa] {
        let published = key.jwk();
        let word = |name: &str| published[name].as_str().unwrap_or_default().as_bytes().to_vec();
        for secret in [key.public_bytes(), published.to_string().into_bytes(), word("n"), word("x"), Vec::new()] {
            let why = served.rejection_message(&hmac_token(&secret, &key.id, &claims(&issuer)));
            assert_eq!(why, "signature algorithm of the token is not allowed");
        }
    }
    // The same for a secret that the issuer publishes by mistake.
    let secret = b"everybody knows this";
    issuer.publish_raw(vec![json!({ "kty": "oct", "kid": "shared", "alg": "HS256", "k": encode(secret) })]);
    let why = served.rejection_message(&hmac_token(secret, "shared", &claims(&issuer)));
    assert_eq!(why, "signature algorithm of the token is not allowed");
}

#[test]
fn s05_nothing_in_the_head_of_a_token_is_followed() {
    let (key, own) = (Signer::new("one", "ES256"), Signer::new("mine", "ES256"));
    let (issuer, evil) = (Issuer::start(&[&key]), Issuer::start(&[&own]));
    let served = OAuthServer::start(&issuer);
    let claims = claims(&issuer);
    let keys = format!("{}{KEYS_PATH}", evil.url);
    for more in [
        json!({ "jku": keys }),
        json!({ "x5u": keys }),
        json!({ "jwk": own.jwk() }),
        json!({ "jwk": own.jwk(), "kid": null, "alg": "EdDSA" }),
        json!({ "kid": keys }),
        json!({ "kid": "../../keys" }),
    ] {
        assert!(served.rejection_message(&own.token_with(more.clone(), &claims)).contains("unknown key"), "{more}");
    }
    assert_eq!(evil.request_count(KEYS_PATH), 0, "nobody goes where a token points to");
    assert!(
        served
            .rejection_message(&own.token_with(json!({ "jwk": own.jwk(), "kid": "one" }), &claims))
            .contains("signature")
    );
    let demanding = "token requires unsupported extensions (`crit`)";
    for crit in [json!(["b64"]), json!(["exp"]), json!([])] {
        let token = key.token_with(json!({ "crit": crit, "b64": false }), &claims);
        assert_eq!(served.rejection_message(&token), demanding, "{crit}");
    }
    for kind in ["logout+jwt", "dpop+jwt", "secevent+jwt", "JOSE", ""] {
        let token = key.token_with(json!({ "typ": kind }), &claims);
        assert_eq!(served.rejection_message(&token), "token is not an access token", "{kind}");
    }
    // A nested token.
    let inner = key.token(&claims);
    let nested = key.sign(r#"{"alg":"ES256","kid":"one","cty":"JWT","typ":"JWT"}"#, &inner);
    assert_eq!(served.rejection_message(&nested), "token is not a valid signed JWT");
    // With a duplicate claim, parsers disagree on which value counts.
    let twice = format!(
        r#"{{"iss":"{}","iss":"{}","aud":"{RESOURCE}","sub":"a","exp":{}}}"#,
        issuer.url,
        issuer.url,
        unix_seconds(60)
    );
    assert_eq!(
        served.rejection_message(&key.sign(r#"{"alg":"ES256","kid":"one"}"#, &twice)),
        "token is not a valid signed JWT"
    );
}

#[test]
fn s05_a_huge_token_is_not_looked_at() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::start(&issuer);
    let token = |length: usize| key.token(&claims_with(&issuer, json!({ "more": "x".repeat(length) })));
    assert_eq!(served.trust(&token(4000)), "VERIFIED");
    assert_eq!(served.rejection_message(&token(7000)), "token is longer than 8 KiB");
}

#[test]
fn s01_nothing_of_a_token_is_logged() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let mut served = OAuthServer::start(&issuer);
    let good = key.token(&claims(&issuer));
    let bad = key.token(&claims_with(&issuer, json!({ "exp": 1, "sub": "line\nbreak" })));
    served.trust(&good);
    served.rejection_message(&bad);
    served.server.terminate();
    let ended = served.server.wait();
    for part in good.split('.').chain(bad.split('.')) {
        assert!(!ended.stderr.contains(part), "{}", ended.stderr);
    }
}

//! Texts of the corpus: literal, except for the parts between `<<` and `>>`.
//!
//! These contain bytes in hexadecimal (`0d 0a`), texts in quotes, names of runtime values (`token`, `folder`), and a
//! repeat count for all of it: `<<1000 x "X: y" 0d 0a>>`.

/// Values known only at run time.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerValues {
    pub(crate) port: String,
    pub(crate) token: String,
    pub(crate) folder: String,
    /// The last opened session.
    pub(crate) session: String,
}

/// The smallest valid request.
pub(crate) const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Expands a text to bytes.
pub(crate) fn render(text: &str, facts: &ServerValues) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((plain, special)) = rest.split_once("<<") {
        let (special, after) = special.split_once(">>").ok_or_else(|| format!("no `>>` in {text:?}"))?;
        out.extend(plain.as_bytes());
        out.extend(render_macro(special, facts)?);
        rest = after;
    }
    out.extend(rest.as_bytes());
    Ok(out)
}

fn render_macro(special: &str, facts: &ServerValues) -> Result<Vec<u8>, String> {
    let (times, mut rest) = match special.split_once(" x ") {
        Some((count, rest)) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
            (count.parse().map_err(|_| format!("not a count: {count}"))?, rest)
        }
        _ => (1, special),
    };
    let mut once = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(once.repeat(times)) };
        if matches!(first, '"' | '\'') {
            let (quoted, after) = rest[1..].split_once(first).ok_or_else(|| format!("no end of {rest}"))?;
            once.extend(quoted.as_bytes());
            rest = after;
            continue;
        }
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "port" => once.extend(facts.port.as_bytes()),
            "token" => once.extend(facts.token.as_bytes()),
            "folder" => once.extend(facts.folder.as_bytes()),
            "session" => once.extend(facts.session.as_bytes()),
            "ping" => once.extend(PING.as_bytes()),
            hexadecimal => {
                let byte = u8::from_str_radix(hexadecimal, 16).ok().filter(|_| hexadecimal.len() == 2);
                once.push(byte.ok_or_else(|| format!("what is `{hexadecimal}`?"))?);
            }
        }
        rest = after;
    }
}

#[test]
fn bytes_counts_and_names_are_put_in() {
    let facts = ServerValues { token: "secret".into(), ..ServerValues::default() };
    let read = |text| render(text, &facts).unwrap();
    assert_eq!(read(r#"{"a":"b\n"}"#), br#"{"a":"b\n"}"#);
    assert_eq!(read(r#"a<<ff 00>>b<<3 x "x" '"' 0d 0a>>"#), b"a\xff\0bx\"\r\nx\"\r\nx\"\r\n");
    assert_eq!(read("Bearer <<token>>x"), b"Bearer secretx");
    assert!(render("<<nonsense>>", &facts).is_err() && render("<<ff", &facts).is_err());
}

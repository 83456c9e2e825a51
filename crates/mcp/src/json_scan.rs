//! Locates members of a JSON object without parsing their values.
//!
//! A message is validated as JSON once, when it is decoded. After that a method only needs the positions of its
//! members, and strings can be skipped at memory speed. The parser used to read a call with a megabyte of text three
//! times, once for each level around the text.

use std::borrow::Cow;

/// The texts of the members with these names, in one pass. `None` when a name is duplicated, or when the text is not an
/// object: the caller then uses the full parser, which reports the error.
pub(crate) fn pick<'a, const N: usize>(object: &'a str, names: [&str; N]) -> Option<[Option<&'a str>; N]> {
    let mut found = [None; N];
    let mut rest = Cursor { text: object, at: 0 };
    rest.expect(b'{')?;
    if rest.peek()? == b'}' {
        return Some(found);
    }
    loop {
        let key = decode_string(rest.value()?)?;
        rest.expect(b':')?;
        let value = rest.value()?;
        if let Some(index) = names.iter().position(|name| *name == key)
            && found[index].replace(value).is_some()
        {
            return None;
        }
        match rest.next()? {
            b',' => {}
            b'}' => return Some(found),
            _ => return None,
        }
    }
}

/// Decodes a JSON string; allocates only if it has escapes.
pub(crate) fn decode_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// Cursor over the unread text.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next non-whitespace byte.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    /// The text of the value at the cursor.
    fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.skip_string()?,
            b'{' | b'[' => self.skip_nested()?,
            _ => {
                let rest = &self.text.as_bytes()[start..];
                self.at += rest.iter().position(|byte| b",}] \t\n\r".contains(byte))?;
            }
        }
        self.text.get(start..self.at)
    }

    fn skip_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            let stop = memchr::memchr2(b'"', b'\\', rest)?;
            if rest[stop] == b'"' {
                self.at += stop + 1;
                return Some(());
            }
            self.at += stop + 2;
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.text.as_bytes().get(self.at)? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// A JSON value as text, with whitespace where JSON allows it.
    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            (-1e9f64..1e9).prop_map(|number| format!("{number:e}")),
            text(),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let members = prop::collection::vec((text(), space(), inner.clone()), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(|values| format!("[{}]", values.join(" , "))),
                members.prop_map(object),
            ]
        })
    }

    fn object(members: Vec<(String, String, String)>) -> String {
        let members: Vec<_> =
            members.into_iter().map(|(key, space, value)| format!("{key}{space}:{space}{value}{space}")).collect();
        format!("{{{}}}", members.join(","))
    }

    fn text() -> impl Strategy<Value = String> {
        r#"[ab\\"{}\[\],:ü\n]{0,3}"#.prop_map(|text| serde_json::to_string(&text).expect("a string can be written"))
    }

    fn space() -> impl Strategy<Value = String> {
        "[ \t\r\n]{0,2}"
    }

    proptest! {
        #[test]
        fn what_is_picked_is_what_the_parser_reads(
            members in prop::collection::vec((text(), space(), json()), 0..6),
            before in space(),
        ) {
            let object = format!("{before}{}", object(members));
            let plain: BTreeMap<String, &RawValue> = serde_json::from_str(&object).expect("JSON");
            let count = |name: &str| {
                let mut seen = 0;
                let mut rest = Cursor { text: &object, at: 0 };
                rest.expect(b'{');
                while rest.peek() != Some(b'}') {
                    seen += usize::from(decode_string(rest.value().expect("a key")).as_deref() == Some(name));
                    rest.expect(b':');
                    rest.value().expect("a value");
                    if rest.peek() == Some(b',') {
                        rest.next();
                    }
                }
                seen
            };
            for name in plain.keys().map(String::as_str).chain(["a", "none"]) {
                let picked = pick(&object, [name]);
                match count(name) {
                    0 | 1 => prop_assert_eq!(picked, Some([plain.get(name).map(|raw| raw.get())])),
                    _ => prop_assert_eq!(picked, None),
                }
            }
        }

        #[test]
        fn text_that_is_not_json_is_never_a_panic(text in r#"[{}\[\]",:\\a1 ]{0,40}|.{0,20}"#) {
            pick(&text, ["a"]);
        }
    }
}

//! Output of `--json`, the same for all commands: one line per object, indented if stdout is a terminal.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Writes one object. Serialized directly to the output, because a document may be large.
pub(super) fn write<W: Write + ?Sized>(value: &impl Serialize, out: &mut W) -> io::Result<()> {
    write_as(value, io::stdout().is_terminal(), out)
}

fn write_as<W: Write + ?Sized>(value: &impl Serialize, is_indented: bool, mut out: &mut W) -> io::Result<()> {
    match is_indented {
        true => serde_json::to_writer_pretty(&mut out, value)?,
        false => serde_json::to_writer(&mut out, value)?,
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_one_line_and_indented_on_a_terminal() {
        let written = |is_indented: bool| {
            let mut out = Vec::new();
            write_as(&json!({ "a": [1] }), is_indented, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(false), "{\"a\":[1]}\n");
        assert_eq!(written(true), "{\n  \"a\": [\n    1\n  ]\n}\n");
    }
}

//! Plain-text tables for the terminal.

use std::io::Write;

/// Prints rows under a heading with fitted column widths; numbers are right-aligned.
pub(super) fn write_table(heading: &[(&str, Align)], rows: &[Vec<String>], out: &mut dyn Write) -> std::io::Result<()> {
    let wide = |text: &str| text.chars().count();
    let names: Vec<String> = heading.iter().map(|(name, _)| (*name).to_owned()).collect();
    let lines = || [&names].into_iter().chain(rows);
    let width = |column: usize| lines().map(|row| wide(&row[column])).max().unwrap_or_default();
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    for row in lines() {
        let mut line = String::new();
        for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(heading) {
            let space = " ".repeat(width - wide(cell));
            line += &match align {
                Align::Left => format!("{cell}{space}  "),
                Align::Right => format!("{space}{cell}  "),
            };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Align {
    Left,
    Right,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut out = Vec::new();
        let rows = [vec!["é".to_owned(), "1".to_owned()], vec!["long".to_owned(), "100".to_owned()]];
        write_table(&[("NAME", Align::Left), ("N", Align::Right)], &rows, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME    N\né       1\nlong  100\n");
    }
}

//! Plain-text tables. On a terminal, the cells of wrapping columns are broken so that rows fit its width.

use std::io::Write;

use super::terminal::{stdout_columns, width, wrap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    /// Left-aligned, and wrapped if the table is wider than the terminal.
    Wrap,
}

/// Space between two columns.
const GAP: usize = 2;
/// Minimum width of a wrapping column.
const MIN_WRAP_COLUMNS: usize = 12;

/// Prints rows under a heading with fitted column widths. Without a terminal, every row is one line.
pub(super) fn write_table(heading: &[(&str, Align)], rows: &[Vec<String>], out: &mut dyn Write) -> std::io::Result<()> {
    let names = heading.iter().map(|(name, _)| (*name).to_owned()).collect();
    let rows: Vec<&Vec<String>> = [&names].into_iter().chain(rows).collect();
    let aligns: Vec<Align> = heading.iter().map(|(_, align)| *align).collect();
    write_rows(&aligns, &rows, stdout_columns(), out)
}

/// The same without a heading.
pub(super) fn write_list(aligns: &[Align], rows: &[Vec<String>], out: &mut dyn Write) -> std::io::Result<()> {
    write_rows(aligns, &rows.iter().collect::<Vec<_>>(), stdout_columns(), out)
}

fn write_rows(
    aligns: &[Align],
    rows: &[&Vec<String>],
    columns: Option<usize>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or_default();
    let widths = fit((0..aligns.len()).map(widest).collect(), aligns, columns);
    for row in rows {
        let lines = |((cell, columns), align): ((&String, &usize), &Align)| match align {
            Align::Wrap if width(cell) > *columns => wrap(cell, *columns),
            _ => vec![cell.clone()],
        };
        let cells: Vec<Vec<String>> = row.iter().zip(&widths).zip(aligns).map(lines).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..height {
            let mut line = String::new();
            for ((cell, columns), align) in cells.iter().zip(&widths).zip(aligns) {
                let text = cell.get(at).map(String::as_str).unwrap_or_default();
                let space = " ".repeat(columns.saturating_sub(width(text)));
                line += &match align {
                    Align::Left | Align::Wrap => format!("{text}{space}"),
                    Align::Right => format!("{space}{text}"),
                };
                line += &" ".repeat(GAP);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

/// Narrows the widest wrapping columns until a row fits, or none can be narrowed further.
fn fit(mut widths: Vec<usize>, aligns: &[Align], columns: Option<usize>) -> Vec<usize> {
    let Some(columns) = columns else { return widths };
    loop {
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let widest = (0..widths.len())
            .filter(|column| aligns[*column] == Align::Wrap && widths[*column] > MIN_WRAP_COLUMNS)
            .max_by_key(|column| widths[*column]);
        match widest {
            Some(column) if total > columns => widths[column] -= 1,
            _ => return widths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 3]], columns: Option<usize>) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        let mut out = Vec::new();
        let aligns = [Align::Left, Align::Right, Align::Wrap];
        write_rows(&aligns, &rows.iter().collect::<Vec<_>>(), columns, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        assert_eq!(
            table(&[["NAME", "N", "WHAT"], ["é", "1", "a b"], ["日本語", "100", ""]], None),
            "NAME      N  WHAT\né         1  a b\n日本語  100\n"
        );
    }

    #[test]
    fn long_cells_are_wrapped_to_the_terminal_and_only_there() {
        let path = "/home/ada/documents/reports/2026/annual-report.pdf";
        let rows = [["NAME", "N", "WHAT"], ["one", "1", path]];
        assert_eq!(table(&rows, None).lines().count(), 2);
        let narrow = table(&rows, Some(40));
        assert!(narrow.lines().all(|line| width(line) <= 40), "{narrow}");
        assert!(narrow.lines().nth(2).unwrap().starts_with("         "), "{narrow}");
        let text: String = narrow.lines().skip(1).map(|line| line[9..].trim()).collect();
        assert_eq!(text, path);
        // Narrower than the minimum of all columns: nothing is lost.
        assert!(table(&rows, Some(5)).lines().count() > 3);
    }
}

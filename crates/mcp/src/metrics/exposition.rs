//! Prometheus and OpenMetrics text formats.

use std::borrow::Cow;
use std::fmt::Write;

/// Exposition format. OpenMetrics, unless the scraper accepts only the older format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpositionFormat {
    OpenMetrics,
    Plain,
}

pub(super) const EOF_MARKER: &str = "# EOF\n";

impl ExpositionFormat {
    /// The format for an `Accept` header.
    pub(crate) fn from_accept(accept: Option<&str>) -> ExpositionFormat {
        let accept = accept.unwrap_or_default();
        match accept.contains("text/plain") && !accept.contains("application/openmetrics-text") {
            true => ExpositionFormat::Plain,
            false => ExpositionFormat::OpenMetrics,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            ExpositionFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ExpositionFormat::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Writes the HELP and TYPE lines of a metric.
pub(crate) fn write_header(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
}

/// Escapes a label value.
pub(super) fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Converts OpenMetrics to the older format, which names counters by their samples and has no `info`, units or EOF
/// marker.
pub(super) fn to_prometheus_text(open: &str) -> String {
    let mut lines = Vec::new();
    let mut help: Option<(&str, &str)> = None;
    for line in open.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), text) => help = Some((name, text.unwrap_or_default())),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let (name, kind): (Cow<'_, str>, &str) = match kind {
                    "counter" => (format!("{name}_total").into(), kind),
                    "info" => (format!("{name}_info").into(), "gauge"),
                    "unknown" => (name.into(), "untyped"),
                    kind => (name.into(), kind),
                };
                if let Some((_, text)) = help.take() {
                    lines.push(Cow::Owned(format!("# HELP {name} {text}")));
                }
                lines.push(format!("# TYPE {name} {kind}").into());
            }
            (Some("#"), ..) => {}
            _ => lines.push(line.into()),
        }
    }
    lines.push("".into());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_form_is_for_those_who_ask_for_it_alone() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for accept in [None, Some("*/*"), Some(prometheus), Some("text/html")] {
            assert_eq!(ExpositionFormat::from_accept(accept), ExpositionFormat::OpenMetrics, "{accept:?}");
        }
        assert_eq!(ExpositionFormat::from_accept(Some("text/plain")), ExpositionFormat::Plain);
    }

    #[test]
    fn the_older_form_names_counters_by_their_samples() {
        let open = "# HELP a Some a.\n# TYPE a counter\na_total 1\n# HELP b Some b.\n# TYPE b info\n# UNIT b x\nb_info{v=\"1\"} 1\n# EOF\n";
        let expected = "# HELP a_total Some a.\n# TYPE a_total counter\na_total 1\n# HELP b_info Some b.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n";
        assert_eq!(to_prometheus_text(open), expected);
    }
}

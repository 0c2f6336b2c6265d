//! Which of the two formats a client wants, by the `Accept` of its request (RFC 9110, 12.5.1). Pure.

use super::Format;

impl Format {
    /// The format for a request's `Accept`: OpenMetrics if that is wanted at least as much as text. A request without one
    /// has text, which everything reads.
    pub fn accepted(accept: &str) -> Format {
        let wanted = |is: fn(&str, &str) -> bool| {
            let weights = accept.split(',').filter_map(|range| weight(range, is));
            weights.fold(0.0, f64::max)
        };
        let open = wanted(|kind, version| {
            kind == "application/openmetrics-text" && matches!(version, "" | "1.0.0" | "0.0.1")
        });
        let text = wanted(|kind, version| {
            matches!(kind, "text/plain") && matches!(version, "" | "0.0.4") || kind == "text/*"
        });
        if open > 0.0 && open >= text { Format::OpenMetrics } else { Format::Text }
    }
}

/// The weight of a media range if it is of that type and version.
fn weight(range: &str, is: fn(&str, &str) -> bool) -> Option<f64> {
    let mut parts = range.split(';').map(str::trim);
    let kind = parts.next()?.to_ascii_lowercase();
    let (mut version, mut weight) = (String::new(), 1.0);
    for part in parts {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "version" => version = value.to_owned(),
            "q" => weight = value.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?,
            _ => {}
        }
    }
    is(&kind, &version).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_open_metrics_has_it_and_everybody_else_has_text() {
        let of_prometheus = "application/openmetrics-text;version=1.0.0,\
            application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for accept in [
            of_prometheus,
            "application/openmetrics-text",
            "text/plain;q=0.5, Application/OpenMetrics-Text; version=\"1.0.0\"; charset=utf-8",
        ] {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "text/plain",
            "text/html,*/*;q=0.8",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=nonsense",
            "application/openmetrics-text;version=9.0.0",
            "application/openmetrics-text;q=0.3,text/plain;q=0.9",
            ";;;=,q=",
        ] {
            assert_eq!(Format::accepted(accept), Format::Text, "{accept}");
        }
    }
}

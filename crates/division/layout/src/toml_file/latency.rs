//! `latency` of a group: who reports it, and what it is to be.

use std::net::{IpAddr, SocketAddr};

use regex_lite::Regex;
use units::Micros;

use super::keys;
use crate::diagnostic::Diagnostic;
use crate::latency::{EVERY, LEAST_EVERY, Latency, LatencySource, LatencyUnit, MOST_EVERY};
use crate::names::cut;
use crate::origin::Spanned;
use crate::reader::{Name, Reader, Takes as _, Value};
use crate::selector::Selector;

const EXAMPLE: &str = "such as { command = [\"/usr/local/bin/p99\"], p99 = \"5ms\" }";

impl Reader<'_> {
    pub(super) fn latency(&mut self, value: &Value<'_>) -> Option<Spanned<Latency>> {
        let before = self.report.errors();
        let entries = self.table(value, "in 'latency'", keys::LATENCY)?;
        let find = |name: &str| {
            let of_name = |(key, _): &&(&Name<'_>, &Value<'_>)| &**key.get_ref() == name;
            entries.iter().find(of_name).map(|(_, value)| *value)
        };
        let p99 = find("p99").and_then(|value| self.time(value, Micros(1), MOST_EVERY));
        let every = find("every").map_or(Some(EVERY), |value| self.time(value, LEAST_EVERY, MOST_EVERY));
        let unit = find("unit").map_or(Some(Default::default()), |value| LatencyUnit::read(self, value));
        let sources: Vec<_> = entries
            .iter()
            .filter(|(key, _)| matches!(&**key.get_ref(), "command" | "log" | "prometheus"))
            .collect();
        let source = match sources.as_slice() {
            [(key, from)] => {
                let (own, missing) = match &**key.get_ref() {
                    "command" => (None, None),
                    "log" => (Some("pattern"), Some("pattern = 'duration: ([0-9.]+ ms)'")),
                    _ => (Some("metric"), Some("metric = \"http_request_duration_seconds\"")),
                };
                for (other, at) in [("pattern", "log"), ("metric", "prometheus")] {
                    if let Some(value) = find(other).filter(|_| own != Some(other)) {
                        self.wrong(value, format!("'{other}' goes with '{at}' only"), "remove one of them");
                    }
                }
                match (own, own.and_then(find), missing) {
                    (None, ..) => self.command(from),
                    (Some("pattern"), Some(pattern), _) => self.log(from, pattern),
                    (Some(_), Some(metric), _) => self.prometheus(from, metric),
                    (Some(own), None, hint) => {
                        let message = format!("'{}' needs '{own}'", cut(key.get_ref()));
                        self.refuse(value, message, &format!("add {}", hint.unwrap_or_default()))
                    }
                }
            }
            [] => self.refuse(
                value,
                "a latency has one of 'command', 'log' and 'prometheus'".to_owned(),
                EXAMPLE,
            ),
            [_, (second, _), ..] => {
                let error = Diagnostic::error("a latency has one of 'command', 'log' and 'prometheus'");
                self.error(
                    error.at(self.origin(*second)).hint("remove one: the latency comes from one source"),
                );
                None
            }
        };
        if find("p99").is_none() {
            self.wrong(value, "a latency has a target: 'p99' is missing".to_owned(), EXAMPLE);
        }
        if self.report.errors() > before {
            return None;
        }
        Some(Spanned::new(
            Latency { source: source?, p99: p99?, every: every?, unit: unit? },
            self.origin(value),
        ))
    }

    /// A time with its unit; a bare number could be anything.
    fn time(&mut self, value: &Value<'_>, least: Micros, most: Micros) -> Option<Micros> {
        let text = self.text(value, "a time such as \"5ms\"")?;
        match text.parse::<Micros>() {
            Ok(_) if text.trim().chars().all(|letter| letter.is_ascii_digit()) => {
                self.refuse(value, format!("'{}' has no unit", cut(text)), "such as \"5ms\"")
            }
            Ok(time) if (least..=most).contains(&time) => Some(time),
            Ok(time) => self.refuse(value, format!("{time} is out of range"), &format!("{least} to {most}")),
            Err(error) => self.refuse(value, error.to_string(), "such as \"5ms\""),
        }
    }

    fn command(&mut self, value: &Value<'_>) -> Option<LatencySource> {
        let texts =
            self.texts(value, "a program with its arguments, such as [\"/usr/local/bin/p99\", \"db\"]");
        let words: Vec<String> = texts.into_iter().map(|(text, _)| text.to_owned()).collect();
        let hint =
            "no shell is used: the program is a path from the root, and each argument a string of its own";
        if words.iter().any(|word| word.contains('\0')) {
            return self.refuse(value, "a command has no NUL byte".to_owned(), hint);
        }
        match words.first() {
            Some(program) if program.starts_with('/') => Some(LatencySource::Command { command: words }),
            Some(program) => self.refuse(value, format!("'{}' is no path from the root", cut(program)), hint),
            None => self.refuse(value, "the command is empty".to_owned(), hint),
        }
    }

    fn log(&mut self, value: &Value<'_>, pattern: &Value<'_>) -> Option<LatencySource> {
        let log = self.text(value, "a file, such as \"/var/log/nginx/access.log\"")?;
        if !log.starts_with('/') || log.contains('\0') {
            return self.refuse(
                value,
                format!("'{}' is no path from the root", cut(log)),
                "such as \"/var/log/nginx/access.log\"",
            );
        }
        let text = self.text(pattern, "a regular expression")?;
        match Regex::new(text) {
            Ok(regex) if regex.captures_len() > 1 => {
                Some(LatencySource::Log { log: log.to_owned(), pattern: text.to_owned() })
            }
            Ok(_) => {
                let hint = "put the latency in brackets: 'duration: ([0-9.]+ ms)'";
                self.refuse(pattern, "the pattern has no group".to_owned(), hint)
            }
            Err(error) => self.refuse(
                pattern,
                format!("this is no regular expression: {error}"),
                "such as 'duration: ([0-9.]+ ms)'",
            ),
        }
    }

    fn prometheus(&mut self, value: &Value<'_>, metric: &Value<'_>) -> Option<LatencySource> {
        let address = self.text(value, "an address, such as \"http://127.0.0.1:9100/metrics\"")?;
        if http_address(address).is_none() {
            let hint = "http://ADDRESS:PORT/PATH, such as \"http://127.0.0.1:9100/metrics\": an address by number or localhost, without TLS";
            return self.refuse(value, format!("'{}' can't be read from", cut(address)), hint);
        }
        let text = self.text(metric, "the name of a metric")?;
        let Some(metric) = Selector::new(text) else {
            let hint =
                "a name, with labels if it has several: 'http_request_duration_seconds{handler=\"/api\"}'";
            return self.refuse(metric, format!("'{}' is no metric", cut(text)), hint);
        };
        Some(LatencySource::Prometheus { prometheus: address.to_owned(), metric })
    }
}

/// The address and the path of `http://127.0.0.1:9100/metrics`. Names but `localhost` are not looked up.
pub fn http_address(url: &str) -> Option<(SocketAddr, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    if path.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return None;
    }
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Some((address, path));
    }
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.ends_with(':') && !port.ends_with(']') => (name, port.parse().ok()?),
        _ => (host, 80),
    };
    let address: IpAddr = match name.trim_start_matches('[').trim_end_matches(']') {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        number => number.parse().ok()?,
    };
    Some((SocketAddr::new(address, port), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_number_or_localhost() {
        let read = |url| http_address(url).map(|(address, path)| (address.to_string(), path));
        let is = |address: &str, path| Some((address.to_owned(), path));
        assert_eq!(read("http://127.0.0.1:9100/metrics?a=b"), is("127.0.0.1:9100", "/metrics?a=b"));
        assert_eq!(read("http://localhost:9187"), is("127.0.0.1:9187", "/"));
        assert_eq!(read("http://10.0.0.7/m"), is("10.0.0.7:80", "/m"));
        assert_eq!(read("http://[::1]:9100/m"), is("[::1]:9100", "/m"));
        assert_eq!(read("http://[::1]/m"), is("[::1]:80", "/m"));
        for wrong in [
            "https://127.0.0.1/m",
            "127.0.0.1:1/m",
            "http://db1:9100/m",
            "http://127.0.0.1:99999/",
            "http:///m",
            "http://127.0.0.1:1/a b",
            "http://user@127.0.0.1/m",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

//! Which requests come from a page of this server, in the browser of its user. Pure: it looks at a request's head alone.
//!
//! A browser says to which name it connected (Host), which page asks (Origin, Sec-Fetch-Site) and for what (Sec-Fetch-Dest),
//! and no page can make it say otherwise. Host must be a loopback name or address, so that a name of others that was made to
//! point here (DNS rebinding) gets nothing. Its port may be another than ours, as the near end of `ssh -L` has one of its
//! own: what counts is that the page's origin is the very Host that it asks.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::{
    HeaderMap, Method,
    header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN},
};

use answers::Problem;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The page and its files, which hold no data.
    Page,
    /// An experiment's report, which stands in a frame of the page.
    Frame,
    /// Data.
    Api,
}

/// Refuses what no page of ours asks.
///
/// # Errors
/// [`Problem`], with the header that is wrong.
pub fn check(method: &Method, headers: &HeaderMap, target: Target) -> Result<(), Problem> {
    let host = host(headers)?;
    let site = single(headers, &FETCH_SITE)?;
    let safe = matches!(*method, Method::GET | Method::HEAD);
    if !safe {
        own_origin(headers, &host)?;
        json_alone(method, headers)?;
    } else if headers.contains_key(ORIGIN) {
        own_origin(headers, &host)?;
    }
    match (target, site) {
        (_, None | Some("same-origin")) => {}
        // typed, or a link in another program
        (Target::Page, Some("none")) => {}
        // a link: what it opens has no data, and no rights without the token
        (Target::Page, Some(_)) if safe && single(headers, &FETCH_DEST)? == Some("document") => {}
        (_, Some(site)) => {
            return Err(Problem::forbidden(format!(
                "another page asks for this (Sec-Fetch-Site: {})",
                units::printable(site)
            )));
        }
    }
    let framed = matches!(single(headers, &FETCH_DEST)?, Some("iframe" | "frame" | "embed" | "object"));
    if framed && target != Target::Frame {
        return Err(Problem::forbidden("this page stands in no frame"));
    }
    Ok(())
}

/// The Host, if it is a loopback name or address with a port.
fn host(headers: &HeaderMap) -> Result<String, Problem> {
    let wrong = |what: &str| {
        Problem::new(421, what).hint(
            "open the printed URL; through ssh -L, http://localhost:PORT/#token=… with the port of your end",
        )
    };
    let host = single(headers, &HOST)?.ok_or_else(|| wrong("the request has no Host"))?;
    if is_loopback(host) {
        Ok(host.to_ascii_lowercase())
    } else {
        Err(wrong(&format!("Host is {}, and not localhost or a loopback address", units::printable(host))))
    }
}

/// `localhost:8080`, `127.0.0.1:8080`, `[::1]:8080`, written as these are and not in another way.
fn is_loopback(host: &str) -> bool {
    let Some((name, port)) = host.rsplit_once(':') else { return false };
    let is_port = !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && !port.starts_with('0')
        && port.parse::<u16>().is_ok();
    let v4 =
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback() && address.to_string() == name);
    let v6 = || {
        let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inner.is_some_and(|inner| inner == "::1" && inner.parse::<Ipv6Addr>().is_ok())
    };
    is_port && (name.eq_ignore_ascii_case("localhost") || v4() || v6())
}

fn own_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    let origin = single(headers, &ORIGIN)?
        .ok_or_else(|| Problem::forbidden("a change needs an Origin, as browsers send it with each"))?;
    if origin.to_ascii_lowercase().strip_prefix("http://") == Some(host) {
        Ok(())
    } else {
        Err(Problem::forbidden(format!("{} is not this page's origin", units::printable(origin))))
    }
}

/// A form can send other types without asking first, and no JSON.
fn json_alone(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if *method == Method::DELETE {
        return Ok(());
    }
    let content = single(headers, &CONTENT_TYPE)?.unwrap_or_default();
    let mut parts = content.split(';').map(|part| part.trim().to_ascii_lowercase());
    let is_json = parts.next().as_deref() == Some("application/json");
    if is_json && parts.all(|part| part == "charset=utf-8") {
        Ok(())
    } else {
        Err(Problem::new(415, "a body is application/json"))
    }
}

/// A header that stands once or not at all.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Problem> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => {
            one.to_str().map(Some).map_err(|_| Problem::invalid(format!("{name} has bytes that are no text")))
        }
        (Some(_), Some(_)) => Err(Problem::invalid(format!("{name} stands twice"))),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn status(method: Method, target: Target, pairs: &[(&'static str, &'static str)]) -> Option<u16> {
        check(&method, &headers(pairs), target).err().map(|problem| problem.status)
    }

    #[test]
    fn only_loopback_names_with_a_port_are_hosts() {
        for host in ["localhost:1", "LOCALHOST:8080", "127.0.0.1:65535", "127.9.8.7:80", "[::1]:8080"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "127.evil.com:8080",
            "127.0.0.1.evil.com:8080",
            "localhost.evil.com:8080",
            "evil.com:8080",
            "localhost",
            "127.0.0.1",
            "localhost:",
            "localhost:0",
            "localhost:08",
            "localhost:99999",
            "localhost:80:80",
            "localhost.:80",
            "127.1:80",
            "0x7f.0.0.1:80",
            "2130706433:80",
            "0.0.0.0:80",
            "[::]:80",
            "[::ffff:127.0.0.1]:80",
            "[0:0:0:0:0:0:0:1]:80",
            "::1:80",
            "user@localhost:80",
            "localhost:80/",
            "192.168.0.1:80",
            "",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_change_needs_the_pages_own_origin_and_json() {
        let host = ("host", "localhost:9000");
        let own = ("origin", "http://localhost:9000");
        let json = ("content-type", "application/json");
        let post = |pairs: &[_]| status(Method::POST, Target::Api, pairs);
        assert_eq!(post(&[host, own, json]), None);
        assert_eq!(post(&[host, own, json, ("sec-fetch-site", "same-origin")]), None);
        assert_eq!(post(&[host, json]), Some(403), "no Origin");
        for origin in [
            "http://evil.com",
            "null",
            "http://localhost:9001",
            "https://localhost:9000",
            "http://127.0.0.1:9000",
        ] {
            assert_eq!(post(&[host, ("origin", origin), json]), Some(403), "{origin}");
        }
        for content in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonx",
            "application/json; charset=utf-7",
        ] {
            assert_eq!(post(&[host, own, ("content-type", content)]), Some(415), "{content}");
        }
        assert_eq!(post(&[host, own]), Some(415), "no type");
        assert_eq!(post(&[host, own, json, ("sec-fetch-site", "cross-site")]), Some(403));
        assert_eq!(post(&[host, own, json, ("sec-fetch-site", "same-site")]), Some(403));
        assert_eq!(post(&[host, own, json, ("origin", "http://evil.com")]), Some(400), "two origins");
        assert_eq!(post(&[host, own, json, host]), Some(400), "two hosts");
    }

    #[test]
    fn another_page_reads_nothing_and_frames_nothing() {
        let host = ("host", "localhost:9000");
        let get = |target, pairs: &[_]| status(Method::GET, target, pairs);
        assert_eq!(get(Target::Api, &[host, ("sec-fetch-site", "cross-site")]), Some(403));
        assert_eq!(get(Target::Api, &[host, ("sec-fetch-site", "none")]), Some(403), "data is no page");
        assert_eq!(get(Target::Api, &[host, ("origin", "http://evil.com")]), Some(403));
        let document = ("sec-fetch-dest", "document");
        assert_eq!(get(Target::Page, &[host, ("sec-fetch-site", "cross-site"), document]), None, "a link");
        assert_eq!(get(Target::Page, &[host, ("sec-fetch-site", "cross-site")]), Some(403), "a script");
        for site in ["cross-site", "same-origin", "none"] {
            let frame = ("sec-fetch-dest", "iframe");
            assert_eq!(get(Target::Page, &[host, ("sec-fetch-site", site), frame]), Some(403), "{site}");
        }
        assert_eq!(
            get(Target::Frame, &[host, ("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "iframe")]),
            None
        );
        assert_eq!(
            get(Target::Frame, &[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "iframe")]),
            Some(403)
        );
    }
}

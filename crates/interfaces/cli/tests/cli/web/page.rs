//! A server of a test, what it is sent, and what comes back.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{desk::Desk, world::World};

/// A server of a test, and a session with it.
pub struct Page {
    child: Child,
    pub address: SocketAddr,
    pub token: String,
    pub cookie: String,
    pub desk: Desk,
}

/// What came back.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

impl Page {
    pub fn new(world: &Arc<World>, test: &str, options: &str) -> Page {
        let mut page = Page::without_session(world, test, options);
        let body = json!({ "token": page.token }).to_string();
        let reply = page.own("POST", "/api/session", &body);
        assert_eq!(reply.status, 204, "{}", reply.body);
        let cookie = reply.header("set-cookie").unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        page.cookie = cookie.split(';').next().unwrap().to_owned();
        page
    }

    pub fn without_session(world: &Arc<World>, test: &str, options: &str) -> Page {
        let desk = Desk::new(world, &format!("web{test}"));
        let line = desk.scene.fill(&format!(
            "web {{s}} --socket {{d}}/socket --directory {{d}}/log --results {{d}}/results {options}"
        ));
        let mut child = Command::new(desk.scene.program())
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let rest = url.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
        let (address, token) = rest.split_once("/#token=").unwrap();
        Page {
            address: address.parse().unwrap(),
            token: token.to_owned(),
            cookie: String::new(),
            child,
            desk,
        }
    }

    /// The request as it stands.
    pub fn raw(&self, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        // a server that refuses early closes while we still write
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// With these headers, as any program can send them.
    pub fn with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        self.raw(request.as_bytes())
    }

    /// As this server's page asks.
    pub fn own(&self, method: &str, path: &str, body: &str) -> Reply {
        let (host, origin) = (self.address.to_string(), format!("http://{}", self.address));
        let headers = [
            ("host", &*host),
            ("origin", &*origin),
            ("content-type", "application/json"),
            ("sec-fetch-site", "same-origin"),
            ("cookie", &*self.cookie),
        ];
        self.with(method, path, &headers, body)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.own("GET", path, "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.own("POST", path, &body.to_string())
    }

    /// As [`Page::own`], with one header put in another's place.
    pub fn but(&self, method: &str, path: &str, other: (&str, &str), body: &str) -> Reply {
        let (host, origin) = (self.address.to_string(), format!("http://{}", self.address));
        let own = [
            ("host", &*host),
            ("origin", &*origin),
            ("content-type", "application/json"),
            ("cookie", &*self.cookie),
        ];
        let mut headers: Vec<(&str, &str)> = own.into_iter().filter(|(name, _)| *name != other.0).collect();
        headers.push(other);
        self.with(method, path, &headers, body)
    }

    pub fn stop(&mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

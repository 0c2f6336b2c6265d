//! What a page of `ringfence web` asks the server, as often as the page does, without a browser.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::ChildStdout,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::measure::{Done, Said};

const INTERVAL: Duration = Duration::from_secs(1);
/// Intervals between two looks at the history, and at the session.
const HISTORY: usize = 5;
const SESSION: usize = 15;

/// A page that is open until this is dropped.
pub struct Page {
    closed: Arc<AtomicBool>,
    asking: Option<JoinHandle<Done>>,
}

/// An address with a session's cookie.
struct Session {
    address: String,
    cookie: String,
}

struct Reply {
    status: String,
    head: String,
}

impl Page {
    /// Opens the URL that the server prints.
    pub fn open(output: ChildStdout) -> Done<Page> {
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url).said("ringfence web")?;
        let parts = url.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/#token="));
        let (address, token) = parts.ok_or_else(|| format!("ringfence web printed no URL: {url}"))?;
        let mut session = Session { address: address.to_owned(), cookie: String::new() };
        let opened = session.ask("POST", "/api/session", "", &format!("{{\"token\":\"{token}\"}}"))?;
        let cookie = opened.header("set-cookie").and_then(|cookie| cookie.split(';').next());
        session.cookie = cookie.ok_or_else(|| format!("there is no session: {}", opened.status))?.to_owned();
        for path in ["/api/session", "/api/machine", "/api/history", "/api/groups", "/api/owners"] {
            session.get(path, "")?;
        }
        let closed = Arc::new(AtomicBool::new(false));
        let of_page = Arc::clone(&closed);
        let asking = std::thread::spawn(move || session.stay(&of_page));
        Ok(Page { closed, asking: Some(asking) })
    }

    /// Refuses one whose questions were not answered.
    pub fn close(mut self) -> Done {
        self.closed.store(true, Ordering::Relaxed);
        let asking = self.asking.take().map(JoinHandle::join);
        asking.map_or(Ok(()), |ended| ended.unwrap_or_else(|_| Err("the page panicked".to_owned())))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

impl Session {
    fn stay(&self, closed: &AtomicBool) -> Done {
        let (mut tag, mut due) = (String::new(), Instant::now());
        for turn in 1.. {
            if closed.load(Ordering::Relaxed) {
                break;
            }
            let sample = self.get("/api/sample", &tag)?;
            tag = sample.header("etag").unwrap_or_default().to_owned();
            if turn % HISTORY == 0 {
                self.get("/api/history", "")?;
            }
            if turn % SESSION == 0 {
                self.get("/api/session", "")?;
            }
            due += INTERVAL;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    fn get(&self, path: &str, tag: &str) -> Done<Reply> {
        let reply = self.ask("GET", path, tag, "")?;
        let is_good = reply.status.contains(" 200 ") || reply.status.contains(" 304 ");
        is_good.then_some(()).ok_or_else(|| format!("{path}: {}", reply.status))?;
        Ok(reply)
    }

    fn ask(&self, method: &str, path: &str, tag: &str, body: &str) -> Done<Reply> {
        let Session { address, cookie } = self;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nsec-fetch-site: same-origin\r\n\
             content-type: application/json\r\ncookie: {cookie}\r\nif-none-match: {tag}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(address).said(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).said(path)?;
        stream.write_all(request.as_bytes()).said(path)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).said(path)?;
        let text = String::from_utf8_lossy(&answer);
        let head = text.split("\r\n\r\n").next().unwrap_or_default().to_owned();
        Ok(Reply { status: head.lines().next().unwrap_or_default().to_owned(), head })
    }
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

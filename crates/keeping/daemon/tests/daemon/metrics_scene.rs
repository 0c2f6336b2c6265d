//! A client of the metrics, and what a case reads out of them.

use std::{
    ffi::OsString,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::ExitCode,
    time::Duration,
};

use crate::world::{Daemon, eventually};

/// The first argument of a client of another user: ADDRESS. It prints the metrics.
pub const SCRAPE: &str = "rf-test-scrape";

pub fn scrape(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let address = words.next().unwrap().into_string().unwrap().parse().unwrap();
    let _ = std::io::stdout().write_all(text(address).as_bytes());
    ExitCode::SUCCESS
}

/// An answer over HTTP.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Asks `GET /path` or the like with these header lines; `None` if nobody answers.
pub fn get(address: SocketAddr, request: &str, head: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // a server that refuses may close before it has read all
    let _ = write!(stream, "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{head}\r\n");
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    };
    Some(Answer { status, head: head.to_ascii_lowercase(), body })
}

fn unchunked(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&rest[..size]);
        text = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// Where a daemon says that its metrics are.
pub fn address(daemon: &Daemon) -> SocketAddr {
    daemon.wait_for_log("serving metrics at http://", 1);
    let log = daemon.log();
    let (_, rest) = log.split_once("serving metrics at http://").unwrap();
    rest.split("/metrics").next().unwrap().parse().unwrap()
}

/// Its metrics as text.
pub fn text(address: SocketAddr) -> String {
    let answer = get(address, "GET /metrics", "").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// The value of a series, which is named as the text has it.
pub fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

/// Waits until a series has a value; a missing one is `None`.
pub fn until(address: SocketAddr, series: &str, wanted: Option<f64>) {
    eventually(&format!("{series} is {wanted:?}"), || value(&text(address), series) == wanted);
}

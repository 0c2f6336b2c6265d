//! This program as a client of another user: it is told the request in its arguments, and prints the status and the body.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

const ASK: &str = "--ask-the-socket";
/// Opens so many connections, tells how many were refused at once, and keeps the others until its input is closed.
const HOLD: &str = "--hold-connections";

pub fn is_asked() -> bool {
    std::env::args().nth(1).is_some_and(|word| word == ASK || word == HOLD)
}

pub fn arguments(socket: &str, method: &str, path: &str, body: &str) -> Vec<String> {
    [ASK, socket, method, path, body].map(str::to_owned).to_vec()
}

pub fn holding(socket: &str, connections: usize) -> Vec<String> {
    vec![HOLD.to_owned(), socket.to_owned(), connections.to_string()]
}

pub fn run() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words[0] == HOLD {
        return hold(&words[1], words[2].parse().unwrap());
    }
    let (status, body) = request(&words[1], &words[2], &words[3], &words[4]);
    println!("{status} {body}");
}

/// One request over a raw connection, so that any path can be requested.
pub fn request(socket: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    raw(socket, request.as_bytes())
}

/// Any bytes; the status is 0 if nothing came back.
pub fn raw(socket: &str, request: &[u8]) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = stream.write_all(request); // refused before it was read, maybe
    answer(&mut stream)
}

pub fn answer(stream: &mut UnixStream) -> (u16, String) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

fn hold(socket: &str, connections: usize) {
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..connections {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut first = [0];
        // one that is kept says nothing
        match stream.read_exact(&mut first) {
            Ok(()) => refused += 1,
            Err(_) => held.push(stream),
        }
    }
    println!("{refused}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(held);
}

//! One request of HTTP/1.0, whose answer ends with the connection. No redirects, no TLS, no names: nothing waits for a
//! resolver.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsFd,
};

use rustix::{
    event::PollFlags,
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt::socket_error},
};

use crate::latency::{Error, answer::words_of, wait::Wait};

/// The largest answer.
const MOST: usize = 16 << 20;
/// Lines of its head.
const HEADERS: usize = 64;

/// The body of the answer.
pub(crate) fn get(address: SocketAddr, path: &str, wait: &Wait<'_>) -> Result<String, Error> {
    let mut stream = connected(address, wait)?;
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: text/plain;version=0.0.4\r\nUser-Agent: ringfence\r\n\r\n"
    );
    let mut left = request.as_bytes();
    while !left.is_empty() {
        match stream.write(left) {
            Ok(count) => left = &left[count..],
            Err(error) => again(error, &stream, PollFlags::OUT, wait)?,
        }
    }
    let (mut answer, mut part) = (Vec::new(), [0; 16 << 10]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return body(&answer),
            Ok(count) => answer.extend_from_slice(&part[..count]),
            Err(error) => again(error, &stream, PollFlags::IN, wait)?,
        }
        // one that sends fast enough never lets us wait
        wait.go_on()?;
        if answer.len() > MOST {
            return Err(Error::Says(format!("its answer is larger than {} MiB", MOST >> 20)));
        }
    }
}

fn connected(address: SocketAddr, wait: &Wait<'_>) -> Result<TcpStream, Error> {
    let failed = |errno: Errno| Error::Says(format!("{address}: {}", words_of(&errno.into())));
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(failed)?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            wait.ready([(socket.as_fd(), PollFlags::OUT)])?;
            socket_error(&socket).and_then(|result| result).map_err(failed)?;
        }
        Err(errno) => return Err(failed(errno)),
    }
    Ok(socket.into())
}

/// Waits where it would block.
fn again(error: std::io::Error, stream: &TcpStream, flags: PollFlags, wait: &Wait<'_>) -> Result<(), Error> {
    match error.kind() {
        ErrorKind::WouldBlock => wait.ready([(stream.as_fd(), flags)]).map(drop),
        ErrorKind::Interrupted => Ok(()),
        _ => Err(Error::failed(error)),
    }
}

/// What follows the head of a whole answer.
fn body(answer: &[u8]) -> Result<String, Error> {
    let says = |text: &str| Error::Says(text.to_owned());
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(answer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Err(says("its answer is cut off")),
        Err(_) => return Err(says("its answer is not HTTP")),
    };
    let code = head.code.unwrap_or_default();
    if code != 200 {
        return Err(Error::Says(format!("it answers {code} {}", head.reason.unwrap_or_default())));
    }
    let header = |name: &str| head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    if header("transfer-encoding").is_some() {
        return Err(says("its answer is in pieces, which HTTP/1.0 has not"));
    }
    let body = &answer[length..];
    let announced = header("content-length")
        .and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse::<usize>().ok());
    if announced.is_some_and(|announced| announced > body.len()) {
        return Err(says("its answer is cut off"));
    }
    Ok(String::from_utf8_lossy(body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_refused() {
        let said = |text: &str| body(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(said("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na 1"), Ok("a 1".to_owned()));
        for (text, expected) in [
            ("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\na 1", "its answer is cut off"),
            ("HTTP/1.0 200 OK\r\nConte", "its answer is cut off"),
            ("HTTP/1.0 503 Unavailable\r\n\r\n", "it answers 503 Unavailable"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na 1\r\n0\r\n\r\n",
                "its answer is in pieces, which HTTP/1.0 has not",
            ),
            ("SSH-2.0-x\r\n", "its answer is not HTTP"),
            ("", "its answer is cut off"),
        ] {
            assert_eq!(said(text), Err(expected.to_owned()), "{text}");
        }
    }
}

//! A small client: one request, one answer, over std alone, for a command that lacks the right itself. It waits as long as
//! it was told to, and reads no more than it can hold.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{SOCKET, name};

/// An answer is not larger.
const LARGEST: u64 = 64 << 20;
/// As the daemon, which ends a connection after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(35);
const MOST_HEADERS: usize = 32;

/// The daemon, as its clients see it.
#[derive(Debug, Clone)]
pub struct Client {
    path: PathBuf,
}

/// Why there is no answer, or which.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Nobody listens there.
    #[error("ringfenced is not running (nothing listens on {})", .0.display())]
    Nobody(PathBuf),
    /// The connection broke off.
    #[error("the daemon did not answer on {}: {error}", .path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What came is not what a daemon answers.
    #[error("what answers on {} is not the daemon: {what}", .path.display())]
    Strange {
        /// The socket.
        path: PathBuf,
        /// What was wrong.
        what: String,
    },
    /// It refused.
    #[error("the daemon refused: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What and why.
        message: String,
        /// What would fix it.
        hint: Option<String>,
    },
}

impl Unanswered {
    /// What would fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Unanswered::Nobody(_) => Some("start it: ringfenced, or systemctl start ringfenced".to_owned()),
            Unanswered::Refused { hint, .. } => hint.clone(),
            Unanswered::Broken { .. } | Unanswered::Strange { .. } => None,
        }
    }
}

impl Default for Client {
    /// The daemon of this machine: `$RINGFENCE_SOCKET`, or [`SOCKET`].
    fn default() -> Client {
        Client::at(std::env::var_os("RINGFENCE_SOCKET").map_or_else(|| PathBuf::from(SOCKET), PathBuf::from))
    }
}

impl Client {
    /// The daemon that answers there.
    pub fn at(path: impl Into<PathBuf>) -> Client {
        Client { path: path.into() }
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Is there a socket? Whether somebody answers on it is another question.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Changes a group's settings.
    ///
    /// # Errors
    /// [`Unanswered`], as all of these.
    pub fn set(&self, group: &str, values: &[(String, String)]) -> Result<Value, Unanswered> {
        let body: Map<String, Value> =
            values.iter().map(|(setting, value)| (setting.clone(), value.as_str().into())).collect();
        self.ask("PATCH", &format!("/v1/groups/{}/settings", name::encoded(group)), Some(&body.into()))
    }

    /// Puts processes into a group.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn move_processes(&self, group: &str, pids: &[u32]) -> Result<Value, Unanswered> {
        let path = format!("/v1/groups/{}/processes", name::encoded(group));
        self.ask("POST", &path, Some(&json!({ "pids": pids })))
    }

    /// Has the configuration read again.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn reload(&self) -> Result<Value, Unanswered> {
        self.ask("POST", "/v1/reload", None)
    }

    /// Any request, by its path.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Unanswered> {
        let answer = self.exchange(method, path, body).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Unanswered::Nobody(self.path.clone()),
            _ => Unanswered::Broken { path: self.path.clone(), error },
        })?;
        let strange = |what: &str| Unanswered::Strange { path: self.path.clone(), what: what.to_owned() };
        let (status, body) = parted(&answer).ok_or_else(|| strange("no HTTP answer"))?;
        let json = || serde_json::from_slice(body).map_err(|error| strange(&error.to_string()));
        if status == 200 {
            return serde_json::from_slice(body).map_err(|error| strange(&error.to_string()));
        }
        let problem: Value = json()?;
        let text = |key: &str| problem[key].as_str().map(str::to_owned);
        Err(Unanswered::Refused {
            status,
            message: text("detail").unwrap_or_else(|| format!("status {status}")),
            hint: text("hint"),
        })
    }

    fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: ringfenced\r\ncontent-type: application/json\r\n");
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let sent = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let read = stream.take(LARGEST).read_to_end(&mut answer);
        // who refuses a request before it is read closes: what he said counts
        if answer.is_empty() {
            sent?;
            read?;
        }
        Ok(answer)
    }
}

/// The status and the body; `None` unless it is a whole answer of a known length.
fn parted(answer: &[u8]) -> Option<(u16, &[u8])> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(answer).ok()? else { return None };
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"))?;
    let length: usize = std::str::from_utf8(length.value).ok()?.parse().ok()?;
    let body = answer.get(head..)?;
    (body.len() == length).then_some((response.code?, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_answer_is_none() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parted(whole), Some((200, &b"{}"[..])));
        for end in 0..whole.len() {
            assert_eq!(parted(&whole[..end]), None);
        }
        assert_eq!(parted(b"SSH-2.0-OpenSSH\r\n"), None);
    }

    #[test]
    fn nobody_there_is_told_as_such() {
        let nobody = Client::at("/nonexistent/rf-test.sock").reload();
        assert!(matches!(nobody, Err(Unanswered::Nobody(_))));
    }
}

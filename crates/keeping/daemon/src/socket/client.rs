//! A small client: one request, one answer, over std alone, for a command whose user lacks the permission himself. Time and
//! size of an answer are limited.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use answers::{
    Problem, SocketProblem,
    socket::{
        Classification, Counters, GroupSummary, MovedProcesses, Processes, Reloaded, SettingChange,
        SettingReading, Status,
    },
};
use kernel::GroupName;
use serde::{Serialize, de::DeserializeOwned};

use super::{SOCKET, SOCKET_VARIABLE, assignments::Assignments, routes::Request};

/// Bytes of an answer.
const MAX_ANSWER: u64 = 64 << 20;
/// A whole answer that changes something: the daemon ends a connection after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(35);
/// A whole answer to a question.
const PATIENCE_TO_READ: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 32;

/// The daemon, as its clients see it.
#[derive(Debug, Clone)]
pub struct Client {
    path: PathBuf,
    /// For each whole answer, where it is not that of its kind.
    patience: Option<Duration>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing listens there.
    #[error("ringfenced is not running (nothing listens on {})", .0.display())]
    NotRunning(PathBuf),
    /// The connection broke.
    #[error("no answer from the daemon on {}: {error}", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The answer is not a daemon's.
    #[error("invalid answer from {}: {what}", .path.display())]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// What was wrong.
        what: String,
    },
    /// The daemon refused.
    #[error("the daemon refused: {}", .0.message)]
    Refused(Problem),
}

impl ClientError {
    /// What would fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ClientError::NotRunning(_) => {
                Some("start it: ringfenced, or systemctl start ringfenced".to_owned())
            }
            ClientError::Refused(problem) => problem.hint.clone(),
            ClientError::Io { .. } | ClientError::Protocol { .. } => None,
        }
    }
}

impl Default for Client {
    /// The daemon of this machine: what [`SOCKET_VARIABLE`] says, or [`SOCKET`].
    fn default() -> Client {
        Client::at(std::env::var_os(SOCKET_VARIABLE).map_or_else(|| PathBuf::from(SOCKET), PathBuf::from))
    }
}

impl Client {
    /// The daemon that listens there.
    pub fn at(path: impl Into<PathBuf>) -> Client {
        Client { path: path.into(), patience: None }
    }

    /// The same, which waits for a whole answer no longer than this.
    pub fn patience(self, patience: Duration) -> Client {
        Client { patience: Some(patience), ..self }
    }

    /// Is there a socket? Whether a daemon listens on it is another question.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// The daemon's status.
    ///
    /// # Errors
    /// [`ClientError`], as all of these.
    pub fn status(&self) -> Result<Status, ClientError> {
        self.get(&Request::Status)
    }

    /// Its counters.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn counters(&self) -> Result<Counters, ClientError> {
        self.get(&Request::Counters)
    }

    /// The groups that the caller may see.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn groups(&self) -> Result<Vec<GroupSummary>, ClientError> {
        self.get(&Request::Groups)
    }

    /// The values of a group's settings; none named means all.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn group(&self, group: &GroupName, settings: &[&str]) -> Result<Vec<SettingReading>, ClientError> {
        let settings = settings.iter().map(|name| (*name).to_owned()).collect();
        self.get(&Request::Group { group: group.clone(), settings })
    }

    /// Changes a group's settings.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn set(&self, group: &GroupName, values: &Assignments) -> Result<Vec<SettingChange>, ClientError> {
        self.send(&Request::Set(group.clone()), values)
    }

    /// Puts processes into a group.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn move_processes(&self, group: &GroupName, pids: &[u32]) -> Result<MovedProcesses, ClientError> {
        self.send(&Request::Move(group.clone()), &Processes { pids: pids.to_vec() })
    }

    /// What the rules say about a process.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn classification(&self, pid: u32) -> Result<Classification, ClientError> {
        self.get(&Request::Classification(pid))
    }

    /// Reloads the configuration.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn reload(&self) -> Result<Reloaded, ClientError> {
        self.get(&Request::Reload)
    }

    /// A request without a body.
    fn get<T: DeserializeOwned>(&self, request: &Request) -> Result<T, ClientError> {
        self.answered(request, &[])
    }

    /// A request with a body.
    fn send<T: DeserializeOwned>(&self, request: &Request, body: &impl Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| self.io(error.into()))?;
        self.answered(request, &body)
    }

    fn answered<T: DeserializeOwned>(&self, request: &Request, body: &[u8]) -> Result<T, ClientError> {
        let of_kind = if request.method() == "GET" { PATIENCE_TO_READ } else { PATIENCE };
        let patience = self.patience.unwrap_or(of_kind);
        let answer = self.exchange(request, body, patience).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NotRunning(self.path.clone()),
            // the kernel's word for a time that is over
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                let late = format!("no whole answer came within {} s", patience.as_secs_f64());
                self.io(io::Error::new(ErrorKind::TimedOut, late))
            }
            _ => self.io(error),
        })?;
        let (status, body) = parted(&answer).ok_or_else(|| self.protocol("no HTTP answer"))?;
        let invalid = |error: serde_json::Error| self.protocol(&error.to_string());
        if status == 200 {
            return serde_json::from_slice(body).map_err(invalid);
        }
        let problem: SocketProblem = serde_json::from_slice(body).map_err(invalid)?;
        Err(ClientError::Refused(problem.into()))
    }

    fn io(&self, error: io::Error) -> ClientError {
        ClientError::Io { path: self.path.clone(), error }
    }

    fn protocol(&self, what: &str) -> ClientError {
        ClientError::Protocol { path: self.path.clone(), what: what.to_owned() }
    }

    fn exchange(&self, request: &Request, body: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
        let end = Instant::now() + patience;
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_write_timeout(Some(patience))?;
        let (method, path) = (request.method(), request.path());
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: ringfenced\r\ncontent-type: application/json\r\n");
        let mut bytes = format!("{head}content-length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(body);
        let sent = stream.write_all(&bytes);
        let mut answer = Vec::new();
        let read = UntilEnd { stream, end }.take(MAX_ANSWER).read_to_end(&mut answer);
        let is_late = |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        // a daemon that refuses a request before it has read it closes the connection: its answer counts
        if answer.is_empty() || read.as_ref().is_err_and(is_late) {
            sent?;
            read?;
        }
        Ok(answer)
    }
}

/// What comes until a moment, however many pieces it comes in.
struct UntilEnd {
    stream: UnixStream,
    end: Instant,
}

impl Read for UntilEnd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

/// The status and the body; `None` unless it is a whole answer of a known length.
fn parted(answer: &[u8]) -> Option<(u16, &[u8])> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
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
    fn a_partial_answer_is_no_answer() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parted(whole), Some((200, &b"{}"[..])));
        for end in 0..whole.len() {
            assert_eq!(parted(&whole[..end]), None);
        }
        assert_eq!(parted(b"SSH-2.0-OpenSSH\r\n"), None);
    }

    #[test]
    fn a_daemon_that_hangs_is_waited_for_as_long_as_wanted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let _hangs = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let status = Client::at(&path).patience(Duration::from_millis(100)).status();
        let said = status.unwrap_err().to_string();
        assert!(said.ends_with("no whole answer came within 0.1 s"), "{said}");
    }

    #[test]
    fn a_daemon_that_sends_byte_by_byte_is_waited_for_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let drips = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b"H").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let start = Instant::now();
        let status = Client::at(&path).patience(Duration::from_millis(300)).status();
        let took = start.elapsed();
        let said = status.unwrap_err().to_string();
        assert!(said.ends_with("no whole answer came within 0.3 s"), "{said}");
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
        drips.join().unwrap();
    }

    #[test]
    fn without_a_socket_the_daemon_is_not_running() {
        let result = Client::at("/nonexistent/rf-test.sock").reload();
        assert!(matches!(result, Err(ClientError::NotRunning(_))));
    }
}

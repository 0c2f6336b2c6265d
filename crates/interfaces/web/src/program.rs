//! This program's own commands, each in a process of its own: what a page changes is changed as the command line changes it, with
//! the same checks, rights, locks and records, and goes on if the server ends meanwhile.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use answers::{Problem, ProblemKind, Reason, Refused};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Bytes of an answer that are read.
const LARGEST: u64 = 64 << 20;
/// A command that has no end by then is not waited for any longer.
const LONGEST: Duration = Duration::from_secs(300);

/// The program, and the options that its commands get so that they work on the same files as the server.
#[derive(Debug, Clone)]
pub struct Program {
    /// The file; `/proc/self/exe` for this very one, also after an update of its package.
    pub path: PathBuf,
    /// Directory of the history.
    pub state: Option<PathBuf>,
    /// The daemon's socket.
    pub socket: Option<PathBuf>,
}

/// What a command printed.
#[derive(Debug)]
pub struct Printed {
    /// Its exit status.
    pub code: i32,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub error: String,
}

/// The exit status of what is done in part, or needs attention.
const ATTENTION: i32 = 3;
/// Of bad input.
const USAGE: i32 = 2;

impl Program {
    /// Runs a command to its end.
    ///
    /// # Errors
    /// It could not be started, or has no end.
    pub fn run<A: Into<OsString>>(&self, args: impl IntoIterator<Item = A>) -> Result<Printed, Problem> {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let failed = |error: io::Error| {
            Problem::unavailable(format!("ringfence can't start its own command: {error}"))
        };
        let mut command = Command::new(&self.path);
        command.arg0("ringfence").args(args).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let readers = (reader(child.stdout.take()), reader(child.stderr.take()));
        let status = ended(&mut child).map_err(failed)?;
        let Some(status) = status else {
            return Err(Problem::unavailable(format!(
                "the command still runs after {} s",
                LONGEST.as_secs()
            ))
            .hint(format!("it goes on as process {}; ringfence history shows its end", child.id())));
        };
        let read = |reader: Reader| reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
        let (out, error) = (read(readers.0), read(readers.1));
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(Printed { code, out, error: String::from_utf8_lossy(&error).into_owned() })
    }

    /// The state directory as an option.
    pub fn state_option(&self) -> Vec<OsString> {
        option("--state", self.state.as_ref())
    }

    /// The socket as an option.
    pub fn socket_option(&self) -> Vec<OsString> {
        option("--socket", self.socket.as_ref())
    }
}

fn option(name: &str, value: Option<&PathBuf>) -> Vec<OsString> {
    value.into_iter().flat_map(|value| [name.into(), value.into()]).collect()
}

type Reader = Option<thread::JoinHandle<Vec<u8>>>;

fn reader(from: Option<impl Read + Send + 'static>) -> Reader {
    from.map(|from| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // what could not be read is missing in the answer, which then is no JSON
            let _ = from.take(LARGEST).read_to_end(&mut bytes);
            bytes
        })
    })
}

/// Looks often at first: most commands take a few milliseconds.
fn ended(child: &mut Child) -> io::Result<Option<std::process::ExitStatus>> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > LONGEST {
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

impl Printed {
    /// Its JSON, where it is done; a part of it that needs attention is done too.
    ///
    /// # Errors
    /// The command's own refusal, with its hint and diagnostics.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        // whatever else its answer has: that may be large, and is passed over
        let refused = serde_json::from_slice::<Refused>(&self.out).ok();
        if refused.is_some() || !matches!(self.code, 0 | ATTENTION) {
            return Err(self.refusal(refused));
        }
        serde_json::from_slice(&self.out).map_err(|error| match error.classify() {
            Category::Data => {
                Problem::unavailable(format!("the command's answer is of another version: {error}"))
            }
            _ => self.refusal(None),
        })
    }

    /// Lines of standard error that are warnings, without the word.
    pub fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for line in self.error.lines() {
            match line.strip_prefix("warning: ") {
                Some(warning) => all.push(warning.to_owned()),
                None => {
                    if let (Some(last), Some(hint)) = (all.last_mut(), line.strip_prefix("hint: ")) {
                        last.push_str(&format!(" ({hint})"));
                    }
                }
            }
        }
        all
    }

    fn refusal(&self, refused: Option<Refused>) -> Problem {
        let refused = refused.unwrap_or_else(|| {
            let message = self.said("error: ").unwrap_or_else(|| self.end());
            Refused {
                error: Reason { message, hint: None, place: None, newest: None },
                diagnostics: Vec::new(),
            }
        });
        let Refused { error: Reason { message, hint, newest, .. }, diagnostics } = refused;
        let diagnostics = diagnostics.into_iter().map(Into::into).collect();
        let hint = hint.or_else(|| self.said("hint: "));
        // somebody was faster after this server had looked, and had the lock for changes first
        let problem = match (newest, self.code) {
            (Some(newest), _) => Problem {
                current: [("generation".to_owned(), newest.to_string())].into(),
                ..Problem::conflict(message)
            },
            (None, USAGE) => Problem::failed(message).kind(ProblemKind::Invalid),
            (None, _) => Problem::failed(message),
        };
        Problem { diagnostics, ..problem.maybe_hint(hint) }
    }

    fn said(&self, word: &str) -> Option<String> {
        self.error.lines().find_map(|line| line.strip_prefix(word)).map(str::to_owned)
    }

    fn end(&self) -> String {
        format!("the command ended with status {} and said nothing", self.code)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_change_that_had_the_lock_second_is_a_conflict_with_the_newest_generation() {
        let refused = |error: &str| {
            let out = format!(r#"{{"error":{{"message":"m","hint":"h","place":null{error}}}}}"#);
            Printed { code: 1, out: out.into_bytes(), error: String::new() }.json::<Value>().unwrap_err()
        };
        let late = refused(r#","newest":4"#);
        assert_eq!((late.status, late.current["generation"].as_str()), (409, "4"));
        assert_eq!((late.message.as_str(), late.hint.as_deref()), ("m", Some("h")));
        assert_eq!(refused("").status, 422);
    }
}

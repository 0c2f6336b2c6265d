//! Any program: how long it takes, and the figure that it prints. It is started as it is, without a shell, and nothing
//! is known of what it does; what it leaves running in its process group ends with it.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use experiment::file;
use regex_lite::Regex;
use rustix::process::Signal;

use super::{
    delayed::Delayed,
    process::{self, Process},
    programs,
};
use crate::{Driver, Error, Failure, Outcome, Site, Span, Timing, files};

/// A program that ends by itself is waited for so long.
const LONGEST: Duration = Duration::from_secs(86_400);

/// One that does not is given so long to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct AnyProgram {
    program: PathBuf,
    arguments: Vec<String>,
    figure: Option<Figure>,
    until_end: bool,
    run: Option<Run>,
}

/// Where its figure is in what it prints.
enum Figure {
    /// The first match's only group.
    Pattern(Regex),
    Pointer(String),
}

enum Run {
    UntilEnd(Delayed),
    UntilStopped(Process, Instant),
}

impl AnyProgram {
    pub fn new(options: &file::Command) -> Result<AnyProgram, Error> {
        let wrong =
            |option, value: &str, reason: String| Failure::Option { option, value: value.to_owned(), reason };
        let Some((program, arguments)) = options.command.split_first() else {
            return Err(wrong("command", "", "a program is needed".to_owned()).into());
        };
        let figure = options
            .figure
            .as_deref()
            .map(|text| figure(text).map_err(|reason| wrong("figure", text, reason)));
        Ok(AnyProgram {
            program: PathBuf::from(program),
            arguments: arguments.to_vec(),
            figure: figure.transpose()?,
            until_end: options.until_end,
            run: None,
        })
    }

    /// A name without a slash is looked for as a shell does.
    fn path(&self) -> Result<PathBuf, Error> {
        let name = self.program.display().to_string();
        let found = if name.contains('/') {
            std::path::absolute(&self.program).ok().filter(|path| path.is_file())
        } else {
            programs::on_path(&name)
        };
        found.ok_or_else(|| {
            let hint = "name it by its whole path".to_owned();
            Failure::Unfit { text: format!("there is no program {name}"), hint }.into()
        })
    }
}

fn figure(text: &str) -> Result<Figure, String> {
    if text.starts_with('/') {
        return Ok(Figure::Pointer(text.to_owned()));
    }
    let pattern = Regex::new(text).map_err(|error| error.to_string())?;
    match pattern.captures_len() {
        2 => Ok(Figure::Pattern(pattern)),
        groups => Err(format!("a regular expression has one group here, not {}", groups - 1)),
    }
}

impl Figure {
    fn find(&self, printed: &str) -> Option<f64> {
        match self {
            Figure::Pattern(pattern) => pattern.captures(printed)?.get(1)?.as_str().trim().parse().ok(),
            Figure::Pointer(pointer) => {
                let json: serde_json::Value = serde_json::from_str(printed).ok()?;
                let value = json.pointer(pointer)?;
                value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
            }
        }
        .filter(|figure: &f64| figure.is_finite())
    }
}

impl Driver for AnyProgram {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        // whether it knows --version is not known
        Ok(vec![("command".to_owned(), self.path()?.display().to_string())])
    }

    fn prepare(&mut self, _: &Site<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self, site: &Site<'_>, _: Timing) -> Result<(), Error> {
        let mut command = process::command(site.launch, site.group, &self.path()?, None, "KILL");
        command.args(&self.arguments);
        self.run = Some(if self.until_end {
            Run::UntilEnd(Delayed::ready(command, "command", site.directory, LONGEST)?)
        } else {
            let begun = Instant::now();
            Run::UntilStopped(Process::start(command, "command", site.directory)?, begun)
        });
        Ok(())
    }

    fn begin(&mut self) {
        if let Some(Run::UntilEnd(run)) = &self.run {
            run.begin();
        }
    }

    fn own_span(&mut self) -> Option<Span> {
        match &mut self.run {
            Some(Run::UntilEnd(run)) => run.span(),
            Some(Run::UntilStopped(..)) | None => None,
        }
    }

    fn done(&mut self) -> Option<f64> {
        None
    }

    fn stop(&mut self, span: Span) -> Result<Outcome, Error> {
        let mut early = None;
        let (process, took) = match self.run.take() {
            Some(Run::UntilEnd(run)) => {
                let ran = run.finish()?;
                early = ended_early(ran.span, span);
                (ran.process, ran.span.to.duration_since(ran.span.from))
            }
            Some(Run::UntilStopped(process, begun)) => (end(process)?, begun.elapsed()),
            None => return Err(Failure::unreadable("the command", "it was not started").into()),
        };
        let files = vec![process.output().to_owned()];
        let mut outcome = Outcome { files, notes: early.into_iter().collect(), ..Outcome::default() };
        outcome.readings.insert("seconds".to_owned(), took.as_secs_f64());
        if let Some(used) = process.used() {
            outcome.readings.insert("cpu-time".to_owned(), used.cpu.as_secs_f64());
            outcome.readings.insert("peak-memory".to_owned(), used.peak as f64);
        }
        if let Some(figure) = &self.figure {
            let value = value(figure, [process.output(), process.messages()])?;
            outcome.readings.insert("value".to_owned(), value);
        }
        Ok(outcome)
    }

    fn clean_up(&mut self) {
        self.run = None;
    }
}

/// A tenth of what counts that went on without it is named.
fn ended_early(own: Span, counts: Span) -> Option<String> {
    let without = counts.to.saturating_duration_since(own.to);
    let whole = counts.to.saturating_duration_since(counts.from);
    let named = without > whole / 10;
    named.then(|| "it ended in some run before what counts was over, by more than a tenth of that".to_owned())
}

/// Ends a program that would go on. Which status it ends with after a signal is its own matter.
fn end(mut process: Process) -> Result<Process, Error> {
    if let Some(status) = process.ended()? {
        return Err(process.failure(status));
    }
    process.signal(Signal::TERM);
    if process.end_within(GRACE)?.is_none() {
        process.signal(Signal::KILL);
        process.end_within(process::PATIENCE)?;
    }
    Ok(process)
}

/// On standard output, else on standard error.
fn value(figure: &Figure, printed: [&Path; 2]) -> Result<f64, Error> {
    for path in printed {
        let text = files::tool_text(path).map_err(Failure::file("read", path))?;
        if let Some(value) = figure.find(&text) {
            return Ok(value);
        }
    }
    Err(Failure::unreadable("the command", "its figure is not in it").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_a_group_or_a_pointer() {
        let find = |figure_text: &str, text: &str| figure(figure_text).unwrap().find(text);
        assert_eq!(find(r"took ([0-9.]+) ms", "x\ntook 2.5 ms\ntook 3 ms"), Some(2.5));
        assert_eq!(find("/a/1", r#"{"a": [1, "7.5"]}"#), Some(7.5));
        assert_eq!(find("/a/2", r#"{"a": [1, 2]}"#), None);
        assert_eq!(find("value (.*)", "value inf"), None);
        for bad in ["no group", "(two) (groups)", "(open"] {
            assert!(figure(bad).is_err(), "{bad}");
        }
    }
}

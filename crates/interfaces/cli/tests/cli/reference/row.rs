//! A row of the comparison: a command line, what is done before, and the difference that is meant, if any.

/// What is done before the command runs.
#[derive(Clone, Copy)]
pub enum Step {
    /// `controller:path/file` and the text that is written to it.
    Write(&'static str, &'static str),
    /// `controller:path`: a group more.
    Make(&'static str),
    /// User and group of `controller:path` or `controller:path/file`.
    Own(&'static str, u32, u32),
    /// A file in `{dir}`, with its text.
    File(&'static str, &'static str),
    /// Starts a process that sleeps: `{pid}`.
    Start,
    /// Puts it into `controller:path`.
    Move(&'static str),
}

/// What is expected on standard output.
#[derive(Clone, Copy)]
pub enum Out {
    /// Just this.
    Is(&'static str),
    /// This among other things.
    Has(&'static str),
}

/// How ours differs, and why.
#[derive(Clone, Copy)]
pub struct Differ {
    pub reason: &'static str,
    pub status: u8,
    pub out: Out,
    /// Something is said on standard error.
    pub error: bool,
    /// Lines of the state.
    pub holds: &'static [&'static str],
    /// Texts that the state lacks.
    pub lacks: &'static [&'static str],
}

/// One command line.
#[derive(Clone, Copy)]
pub struct Row {
    /// `{g}` the group, `{pid}` a process, `{dir}` a directory with the row's files.
    pub line: &'static str,
    pub before: &'static [Step],
    pub differ: Option<Differ>,
    /// All controllers are mounted, and one of them twice.
    pub all_mounted: bool,
}

impl Row {
    /// After these steps.
    pub const fn after(self, before: &'static [Step]) -> Row {
        Row { before, ..self }
    }

    /// With all controllers mounted, in a mount namespace of its own.
    pub const fn mounted(self) -> Row {
        Row { all_mounted: true, ..self }
    }

    /// The state of the groups that ours leaves: lines that are there, texts that are not.
    pub const fn leaves(self, holds: &'static [&'static str], lacks: &'static [&'static str]) -> Row {
        match self.differ {
            Some(differ) => Row { differ: Some(Differ { holds, lacks, ..differ }), ..self },
            None => panic!("of a row without difference the reference tells the state"),
        }
    }
}

/// Both do the same.
pub const fn same(line: &'static str) -> Row {
    Row { line, before: &[], differ: None, all_mounted: false }
}

/// Ours succeeds where the reference does not, or says more.
pub const fn better(line: &'static str, reason: &'static str, out: Out) -> Row {
    differing(line, reason, 0, out, false)
}

/// Ours refuses, with this status.
pub const fn refuses(line: &'static str, reason: &'static str, status: u8) -> Row {
    differing(line, reason, status, Out::Is(""), true)
}

/// Arguments that make no sense.
pub const fn bad(line: &'static str) -> Row {
    refuses(
        line,
        "all commands end with 129 on bad arguments, as libcgroup 3's do; 2.0.2's with 0, 1, 2, 255 or a crash",
        129,
    )
}

pub const fn differing(line: &'static str, reason: &'static str, status: u8, out: Out, error: bool) -> Row {
    let differ = Differ { reason, status, out, error, holds: &[], lacks: &[] };
    Row { line, before: &[], differ: Some(differ), all_mounted: false }
}

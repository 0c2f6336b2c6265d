//! The small C programs that start processes and report what became of them, compiled for this run. What they measure is
//! theirs alone: nothing here starts a process that is measured.

use std::{
    ffi::OsStr,
    fs::Permissions,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::measure::{Done, Said, not_interrupted};

/// The compiled programs, in a directory that every user may look into.
pub struct Probes {
    directory: TempDir,
}

const SOURCES: [(&str, &str); 6] = [
    ("exec_storm", include_str!("../../../keeping/events/probes/exec_storm.c")),
    ("exec_gate", include_str!("../../../keeping/events/probes/exec_gate.c")),
    ("in_group", include_str!("../../../keeping/events/probes/in_group.c")),
    ("late", include_str!("../probes/late.c")),
    ("burst", include_str!("../probes/burst.c")),
    ("pread_only", include_str!("../probes/pread_only.c")),
];

/// What a storm of processes reported.
pub struct Storm {
    pub execs: u32,
    /// Those that were not in the group when they looked.
    pub outside: u32,
    /// From the first one's start to the last one's end.
    pub total: Duration,
}

impl Probes {
    pub fn compile() -> Done<Probes> {
        let directory = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir();
        let probes = Probes { directory: directory.said("a directory")? };
        SOURCES.iter().try_for_each(|(name, source)| probes.build(name, source))?;
        Ok(probes)
    }

    fn build(&self, name: &str, source: &str) -> Done {
        let mut command = Command::new("cc");
        command.args(["-O2", "-static", "-x", "c", "-o"]).arg(self.path(name)).arg("-");
        let mut compiler = command.stdin(Stdio::piped()).spawn().said("cc")?;
        let written = compiler.stdin.take().map(|mut stdin| stdin.write_all(source.as_bytes()));
        let status = compiler.wait().said("cc")?;
        match written {
            Some(Ok(())) if status.success() => Ok(()),
            _ => Err(format!("{name}.c was not compiled: {status}")),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A copy under a name that nobody else's process has, as long as the kernel keeps a name.
    pub fn unique(&self, name: &str) -> Done<PathBuf> {
        let path = self.path(&format!("rf-test-{}", std::process::id()));
        std::fs::copy(self.path(name), &path).said(path.display())?;
        Ok(path)
    }

    /// This many processes of a program, `width` at a time, as `user` if that is not this one.
    pub fn storm(
        &self,
        [execs, width]: [u32; 2],
        user: Option<u32>,
        program: &Path,
        words: &[&str],
    ) -> Done<Storm> {
        let mut command = Command::new(self.path("exec_storm"));
        if let Some(user) = user {
            command.args(["-u", &user.to_string()]);
        }
        command.args([execs.to_string(), width.to_string()]).arg(program).args(words);
        let found = printed(&mut command)?;
        let of = |name| value(&found, name);
        let execs_done = u32::try_from(of("execs")?).said("exec_storm")?;
        let outside = u32::try_from(of("failed")?).said("exec_storm")?;
        Ok(Storm { execs: execs_done, outside, total: Duration::from_nanos(of("total_ns")?) })
    }

    /// How many of the long-lived processes are outside a while after a burst of short ones.
    pub fn burst(&self, [short, long]: [u32; 2], wait: Duration, program: &Path, line: &str) -> Done<u64> {
        let mut command = Command::new(self.path("burst"));
        command.args([short.to_string(), long.to_string(), wait.as_millis().to_string()]);
        value(&printed(command.arg(program).arg(line))?, "outside")
    }
}

/// What a program printed.
fn printed(command: &mut Command) -> Done<String> {
    not_interrupted()?;
    let name = OsStr::display(command.get_program()).to_string();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().said(&name)?;
    not_interrupted()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {}", output.status)),
    }
}

/// The number after a word.
fn value(text: &str, name: &str) -> Done<u64> {
    let after = text.split_whitespace().skip_while(|word| *word != name).nth(1);
    after.and_then(|word| word.parse().ok()).ok_or_else(|| format!("no {name} in {text:?}"))
}

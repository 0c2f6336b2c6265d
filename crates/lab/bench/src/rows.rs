//! Which command is compared with which, and the groups that both sides work on.

use std::{os::unix::fs::symlink, path::Path};

use settings::Controller;
use tempfile::TempDir;

use crate::groups::{GROUP, Groups};

/// One comparison.
pub struct Row {
    pub name: &'static str,
    pub ours: Vec<String>,
    pub peer: Vec<String>,
    /// The largest ratio that we want; `None` for rows that only show the floor.
    pub goal: Option<f64>,
    /// The most page faults that we want of ours.
    pub most_faults: Option<i64>,
}

/// The rows, and the groups they need, which go with them.
pub struct Rows {
    pub rows: Vec<Row>,
    /// Removed with the rows.
    _groups: Groups,
    _links: [Option<TempDir>; 2],
}

/// Groups for the listing row.
const MANY: usize = 1_000;

impl Rows {
    /// With `before`, the peer of each of our commands is the same command of that program.
    pub fn set_up(program: &str, before: Option<&str>) -> Result<Rows, String> {
        let groups = Groups::new()?;
        let controllers = [Controller::Cpu, Controller::Memory, Controller::Pids];
        for controllers in [&controllers[..], &controllers[..1]] {
            let name = if controllers.len() == 1 { format!("{GROUP}/many") } else { GROUP.to_owned() };
            groups.make(&name, controllers)?;
        }
        for index in 0..MANY {
            groups.make(&format!("{GROUP}/many/g{index:04}"), &controllers[..1])?;
        }
        let cpu_only = format!("{GROUP}/many");
        let directory = groups.place(&cpu_only, Controller::Cpu)?.directory;
        let before = before.map(Ours::new).transpose()?;
        let ours = Ours::new(program)?;
        let rows = Pairs { ours: &ours, before: before.as_ref() }.table(&cpu_only, &directory);
        let _links = [Some(ours.links), before.map(|before| before.links)];
        Ok(Rows { rows, _groups: groups, _links })
    }
}

/// A program of ours, and a directory in which it has libcgroup's names.
struct Ours<'p> {
    program: &'p str,
    links: TempDir,
}

impl<'p> Ours<'p> {
    fn new(program: &'p str) -> Result<Ours<'p>, String> {
        Ok(Ours { program, links: links(program)? })
    }
}

/// Our commands with those that they are compared with.
struct Pairs<'p> {
    ours: &'p Ours<'p>,
    before: Option<&'p Ours<'p>>,
}

impl Pairs<'_> {
    fn table(&self, cpu_only: &str, directory: &Path) -> Vec<Row> {
        let (program, old) = (self.ours.program, self.ours.links.path().display());
        let row = |name, ours, peer, goal| self.row(name, ours, peer, goal);
        let within = |most_faults, row: Row| Row { most_faults: Some(most_faults), ..row };
        vec![
            row("true, alone and alone", "/bin/true".into(), "/bin/true".into(), None),
            row(
                "run / cgexec, cpu",
                format!("{program} run {cpu_only} -- /bin/true"),
                format!("cgexec -g cpu:{cpu_only} /bin/true"),
                Some(0.6),
            ),
            within(
                95,
                row(
                    "run / cgexec, cpu memory pids",
                    format!("{program} run {GROUP} -- /bin/true"),
                    format!("cgexec -g cpu,memory,pids:{GROUP} /bin/true"),
                    Some(0.6),
                ),
            ),
            within(
                75,
                row(
                    "set / cgset, one value",
                    format!("{program} set --quiet {GROUP} cpu.shares=512"),
                    format!("cgset -r cpu.shares=512 {GROUP}"),
                    Some(0.6),
                ),
            ),
            row(
                "get / cgget, one value",
                format!("{program} get {GROUP} cpu.shares"),
                format!("cgget -r cpu.shares {GROUP}"),
                None,
            ),
            row(
                "list / find -type d, 1,000 groups",
                format!("{program} list {cpu_only}"),
                format!("find {} -type d", directory.display()),
                Some(1.2),
            ),
            row(
                "our cgexec / cgexec, cpu memory pids",
                format!("{old}/cgexec -g cpu,memory,pids:{GROUP} /bin/true"),
                format!("cgexec -g cpu,memory,pids:{GROUP} /bin/true"),
                Some(0.6),
            ),
            row(
                "our cgset / cgset",
                format!("{old}/cgset -r cpu.shares=512 {GROUP}"),
                format!("cgset -r cpu.shares=512 {GROUP}"),
                Some(0.6),
            ),
            row(
                "our cgget / cgget",
                format!("{old}/cgget -r cpu.shares {GROUP}"),
                format!("cgget -r cpu.shares {GROUP}"),
                Some(0.6),
            ),
            row(
                "our lscgroup / lscgroup, 1,000 groups",
                format!("{old}/lscgroup cpu:{cpu_only}"),
                format!("lscgroup cpu:{cpu_only}"),
                Some(0.4),
            ),
        ]
    }

    fn row(&self, name: &'static str, ours: String, peer: String, goal: Option<f64>) -> Row {
        let (peer, goal) = self.earlier(&ours).map_or((peer, goal), |earlier| (earlier, None));
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect();
        Row { name, ours: words(ours), peer: words(peer), goal, most_faults: None }
    }

    /// The same command of the program before.
    fn earlier(&self, ours: &str) -> Option<String> {
        let before = self.before?;
        let link = ours.strip_prefix(&format!("{}/", self.ours.links.path().display()));
        let link = link.map(|command| format!("{}/{command}", before.links.path().display()));
        let by_path = || Some(format!("{}{}", before.program, ours.strip_prefix(self.ours.program)?));
        link.or_else(by_path)
    }
}

/// Ours under libcgroup's names.
fn links(program: &str) -> Result<TempDir, String> {
    let directory = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let program = std::path::absolute(Path::new(program)).map_err(|error| format!("{program}: {error}"))?;
    for tool in ["cgexec", "cgset", "cgget", "lscgroup"] {
        symlink(&program, directory.path().join(tool)).map_err(|error| format!("{tool}: {error}"))?;
    }
    Ok(directory)
}

//! Processes that the kernel killed as memory was used up, from its log of this boot: also of the time before somebody looked. The
//! log is a ring, and says no more than ten times in five seconds whose limit was met (`printk` rate limits). What ends a
//! process otherwise, kill(2) or systemd-oomd, is not in it.

use std::{
    fs::OpenOptions,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    time::{Duration, SystemTime},
};

use rustix::{
    io::Errno,
    time::{ClockId, clock_gettime},
};
use serde::Serialize;
use units::Bytes;

/// Where the kernel's log is read, a record at a time (Documentation/ABI/testing/dev-kmsg).
const LOG: &str = "/dev/kmsg";
/// More than the longest record.
const RECORD: usize = 8192;
/// `memory.oom.group` ends the other processes of the group at once after the first.
const AT_ONCE: Duration = Duration::from_secs(1);

/// One process that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kill {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its user, by number.
    pub uid: u32,
    /// What it had in memory.
    pub resident: Bytes,
    /// The memory group that it was in, from the hierarchy's root; `None` if the kernel did not log it.
    pub group: Option<String>,
    /// The group whose limit was met; `None` if the machine's memory was used up, or the kernel did not log it.
    pub limited: Option<String>,
    /// That limit: of memory, or of memory and swap together on v1.
    pub limit: Option<Bytes>,
    /// It went with others of its group (`memory.oom.group`).
    pub with_group: bool,
}

/// The kills that the log still has, oldest first.
///
/// # Errors
/// The log can't be opened: EPERM without CAP_SYSLOG where `kernel.dmesg_restrict` is 1, ENOENT in a container without it.
pub fn kills() -> io::Result<Vec<Kill>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut log = OpenOptions::new().read(true).custom_flags(flags).open(LOG)?;
    let mut reader = Reader::new(boot());
    let mut record = vec![0; RECORD];
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => reader.record(&String::from_utf8_lossy(&record[..length])),
            // it was pushed out meanwhile
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(reader.kills)
}

/// The moment that the log's times count from, since 1970.
fn boot() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let clock = clock_gettime(ClockId::Monotonic);
    let since = Duration::new(clock.tv_sec.cast_unsigned(), u32::try_from(clock.tv_nsec).unwrap_or(0));
    now.saturating_sub(since)
}

/// What the lines so far say of the kill that they lead to.
#[derive(Default)]
struct Scene {
    pid: Option<u32>,
    group: Option<String>,
    limited: Option<String>,
    /// Use and limit of memory, and of memory and swap together.
    memory: Option<(u64, u64)>,
    both: Option<(u64, u64)>,
}

struct Reader {
    boot: Duration,
    scene: Scene,
    /// The group whose processes go together, since when, and what the first of them was.
    together: Option<(Duration, Kill)>,
    kills: Vec<Kill>,
}

impl Reader {
    fn new(boot: Duration) -> Reader {
        Reader { boot, scene: Scene::default(), together: None, kills: Vec::new() }
    }

    /// `4,1234,824819299,-;TEXT`: priority and facility, number, microseconds since the boot, flags. Lines behind the first have
    /// properties.
    fn record(&mut self, record: &str) {
        let Some((head, rest)) = record.split_once(';') else { return };
        let mut fields = head.split(',');
        let number = |field: Option<&str>| field?.parse::<u64>().ok();
        let (priority, _, micros) = (number(fields.next()), fields.next(), number(fields.next()));
        // what programs write into the log has another facility
        if priority.is_none_or(|priority| priority >> 3 != 0) {
            return;
        }
        let text = rest.lines().next().unwrap_or_default();
        self.line(Duration::from_micros(micros.unwrap_or(0)), text);
    }

    fn line(&mut self, at: Duration, text: &str) {
        if text.contains(" invoked oom-killer: ") {
            self.scene = Scene::default();
        } else if let Some(rest) = text.strip_prefix("memory: usage ") {
            self.scene.memory = used_and_limit(rest);
        } else if let Some(rest) = text.strip_prefix("memory+swap: usage ") {
            self.scene.both = used_and_limit(rest);
        } else if let Some(rest) = text.strip_prefix("oom-kill:") {
            self.victim(rest);
        } else if let Some(rest) = text.strip_prefix("Tasks in ") {
            let group = rest.strip_suffix(" are going to be killed due to memory.oom.group set");
            if let (Some(group), Some(first)) = (group, self.kills.last_mut()) {
                first.with_group = true;
                self.together = Some((at, Kill { group: Some(group.to_owned()), ..first.clone() }));
            }
        } else if let Some((_, rest)) = text.split_once("Killed process ") {
            self.killed(at, rest);
        }
    }

    /// `…,oom_memcg=/a,task_memcg=/a/b,task=COMM,pid=7,uid=0`, or `…,global_oom,task_memcg=…`.
    fn victim(&mut self, text: &str) {
        let Some((text, uid)) = text.rsplit_once(",uid=") else { return };
        let Some((text, pid)) = text.rsplit_once(",pid=") else { return };
        let Some((before, text)) = text.split_once(",task_memcg=") else { return };
        let Some((group, _)) = text.rsplit_once(",task=") else { return };
        if uid.parse::<u32>().is_err() {
            return;
        }
        self.scene.pid = pid.parse().ok();
        self.scene.group = Some(group.to_owned());
        self.scene.limited = before.split_once(",oom_memcg=").map(|(_, limited)| limited.to_owned());
    }

    /// `24956 (python3) total-vm:90kB, anon-rss:1kB, file-rss:2kB, shmem-rss:0kB, UID:0 pgtables:116kB oom_score_adj:0`.
    fn killed(&mut self, at: Duration, text: &str) {
        let Some((pid, rest)) = text.split_once(" (") else { return };
        let Some((comm, figures)) = rest.rsplit_once(") total-vm:") else { return };
        let Ok(pid) = pid.parse::<u32>() else { return };
        let figure = |name: &str| -> Option<u64> {
            let text = figures.split_once(name)?.1;
            text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse().ok()
        };
        let resident =
            ["anon-rss:", "file-rss:", "shmem-rss:"].iter().filter_map(|name| figure(name)).sum::<u64>();
        // the lines before may be of another one, whose own were not logged
        let scene = std::mem::take(&mut self.scene);
        let scene = if scene.pid == Some(pid) { scene } else { Scene::default() };
        let full = |(used, limit): (u64, u64)| (used >= limit).then_some(limit);
        let limit = scene.memory.and_then(full).or_else(|| scene.both.and_then(full));
        let mut kill = Kill {
            at: u64::try_from((self.boot + at).as_millis()).unwrap_or(u64::MAX),
            pid,
            comm: comm.to_owned(),
            uid: figure("UID:").and_then(|uid| u32::try_from(uid).ok()).unwrap_or(0),
            resident: Bytes(resident * 1024),
            limit: limit.filter(|_| scene.limited.is_some()).map(|limit| Bytes(limit * 1024)),
            group: scene.group,
            limited: scene.limited,
            with_group: false,
        };
        match self.together.take().filter(|(since, _)| kill.group.is_none() && at <= *since + AT_ONCE) {
            Some((since, first)) => {
                let Kill { group, limited, limit, .. } = first.clone();
                kill = Kill { group, limited, limit, with_group: true, ..kill };
                self.together = Some((since, first));
            }
            None => self.together = None,
        }
        self.kills.push(kill);
    }
}

/// `65536kB, limit 65536kB, failcnt 12`.
fn used_and_limit(text: &str) -> Option<(u64, u64)> {
    let (used, rest) = text.split_once("kB, limit ")?;
    Some((used.parse().ok()?, rest.split_once("kB")?.0.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 writes it on v1; `{p}` is the priority.
    const LOG: &str = "\
{p},1,800000000,-;sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
{p},2,800000001,-;memory: usage 24576kB, limit 24576kB, failcnt 371
{p},3,800000002,-;memory+swap: usage 24576kB, limit 9007199254740988kB, failcnt 0
{p},4,800000003,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/db,task_memcg=/db/etl,task=a) total-vm: (b,pid=14298,uid=1001
{p},5,800000004,-;Memory cgroup out of memory: Killed process 14298 (a) total-vm: (b) total-vm:84340kB, anon-rss:23040kB, file-rss:6100kB, shmem-rss:4kB, UID:1001 pgtables:116kB oom_score_adj:0
{p},6,801000000,-;Memory cgroup out of memory: Killed process 14299 (a) total-vm:84340kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB, UID:0 pgtables:116kB oom_score_adj:0
";

    fn read(log: &str) -> Vec<Kill> {
        let mut reader = Reader::new(Duration::from_secs(1000));
        log.lines().for_each(|line| reader.record(line));
        reader.kills
    }

    #[test]
    fn a_kill_is_named_with_its_group_and_the_limit_that_was_met() {
        let [first, second] = read(&LOG.replace("{p}", "6")).try_into().unwrap();
        let expected = Kill {
            at: 1_800_000,
            pid: 14298,
            comm: "a) total-vm: (b".to_owned(),
            uid: 1001,
            resident: Bytes((23040 + 6100 + 4) * 1024),
            group: Some("/db/etl".to_owned()),
            limited: Some("/db".to_owned()),
            limit: Some(Bytes(24576 * 1024)),
            with_group: false,
        };
        assert_eq!(first, expected);
        // the kernel limits how often it says why
        assert_eq!((second.pid, second.group, second.limited, second.limit), (14299, None, None, None));
        // a program may write the same into the log
        assert_eq!(read(&LOG.replace("{p}", "12")), []);
    }

    #[test]
    fn the_machine_s_memory_is_nobody_s_limit() {
        let log = "6,1,5,-;x invoked oom-killer: y\n\
                   6,2,5,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,task=t,pid=7,uid=0\n\
                   6,3,6,-;Out of memory: Killed process 7 (t) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0";
        let [kill] = read(log).try_into().unwrap();
        assert_eq!((kill.group.as_deref(), kill.limited, kill.limit), (Some("/a"), None, None));
    }

    #[test]
    fn those_that_go_with_their_group_are_of_the_same_kill() {
        let killed = |at: u64, pid: u32| {
            format!(
                "6,9,{at},-;Memory cgroup out of memory: Killed process {pid} (t) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
            )
        };
        let log =
            "6,1,5,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=t,pid=7,uid=0\n"
                .to_owned()
                + &killed(5, 7)
                + "6,2,6,-;Tasks in /a are going to be killed due to memory.oom.group set\n"
                + &killed(7, 8)
                + &killed(8, 9)
                + &killed(9_000_000, 10);
        let kills = read(&log);
        let of = |kill: &Kill| (kill.pid, kill.group.clone(), kill.with_group);
        let group = |name: &str| Some(name.to_owned());
        let expected =
            [(7, group("/a/b"), true), (8, group("/a"), true), (9, group("/a"), true), (10, None, false)];
        assert_eq!(kills.iter().map(of).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_cut_off_or_of_another_form_says_nothing() {
        for line in
            ["", ";", "6;", "6,1,x,-;Killed process", "6,1,5,-;Killed process 7 (t)", "6,1,5,-;oom-kill:"]
        {
            assert_eq!(read(line), [], "{line}");
        }
    }
}

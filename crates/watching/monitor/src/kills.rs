//! Processes that the kernel killed as memory was used up, from its log of this boot: also of the time before somebody looked. The
//! log is a ring, and says no more than ten times in five seconds whose limit was met (`printk` rate limits). What ends a
//! process otherwise, kill(2) or systemd-oomd, is not in it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    time::{Duration, SystemTime},
};

use rustix::{
    io::Errno,
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};
use units::Bytes;

/// Where the kernel's log is read, a record at a time (Documentation/ABI/testing/dev-kmsg).
const LOG: &str = "/dev/kmsg";
/// What is different after each boot (random(4)).
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// More than the longest record.
const RECORD: usize = 8192;
/// `memory.oom.group` ends the other processes of the group at once after the first.
const AT_ONCE: Duration = Duration::from_secs(1);

/// One process that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// The boot.
    pub boot: String,
    /// The record's number in the log of that boot.
    pub number: u64,
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

/// The kernel's log, read from the first record that it still has.
#[derive(Debug)]
pub struct KernelLog {
    log: File,
    reader: Reader,
}

impl KernelLog {
    /// Opens it.
    ///
    /// # Errors
    /// EPERM without CAP_SYSLOG where `kernel.dmesg_restrict` is 1, ENOENT in a container without it.
    pub fn open() -> io::Result<KernelLog> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let log = OpenOptions::new().read(true).custom_flags(flags).open(LOG)?;
        let id = std::fs::read_to_string(BOOT)?.trim_end().to_owned();
        Ok(KernelLog { log, reader: Reader::new(id, boot()) })
    }

    /// The kills since the last look, oldest first; never waits.
    ///
    /// # Errors
    /// It can't be read.
    pub fn kills(&mut self) -> io::Result<Vec<Kill>> {
        // the clock may have been set, and the log's stands still while the machine sleeps
        self.reader.boot = boot();
        let mut record = vec![0; RECORD];
        loop {
            match self.log.read(&mut record) {
                Ok(0) => break,
                Ok(length) => self.reader.record(&String::from_utf8_lossy(&record[..length])),
                // it was pushed out meanwhile
                Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(std::mem::take(&mut self.reader.kills))
    }
}

impl AsFd for KernelLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.log.as_fd()
    }
}

/// The moment that the log's times count from, since 1970.
fn boot() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let clock = clock_gettime(ClockId::Monotonic);
    let since = Duration::new(clock.tv_sec.cast_unsigned(), u32::try_from(clock.tv_nsec).unwrap_or(0));
    now.saturating_sub(since)
}

/// How a kill begins, whatever the group and the program are called.
const KILLED: [&str; 3] = [
    "Memory cgroup out of memory: Killed process ",
    "Out of memory: Killed process ",
    "Out of memory (oom_kill_allocating_task): Killed process ",
];

/// What the lines so far say of the kill that they lead to.
#[derive(Debug, Default)]
struct Scene {
    /// `constraint=…,oom_memcg=/a,task_memcg=/a/b,task=COMM,pid=7,uid=0`, read once PID and name are known.
    victim: Option<String>,
    /// Use and limit of memory, and of memory and swap together.
    memory: Option<(u64, u64)>,
    both: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Reader {
    id: String,
    boot: Duration,
    scene: Scene,
    /// The group whose processes go together, since when, and what the first of them was.
    together: Option<(Duration, Kill)>,
    kills: Vec<Kill>,
}

impl Reader {
    fn new(id: String, boot: Duration) -> Reader {
        Reader { id, boot, scene: Scene::default(), together: None, kills: Vec::new() }
    }

    /// `4,1234,824819299,-;TEXT`: priority and facility, number, microseconds since the boot, flags. Lines behind the first have
    /// properties.
    fn record(&mut self, record: &str) {
        let Some((head, rest)) = record.split_once(';') else { return };
        let mut fields = head.split(',');
        let number = |field: Option<&str>| field?.parse::<u64>().ok();
        let (priority, of_record, micros) =
            (number(fields.next()), number(fields.next()), number(fields.next()));
        // what programs write into the log has another facility
        if priority.is_none_or(|priority| priority >> 3 != 0) {
            return;
        }
        // other than printable bytes, and the backslash
        let text = units::unescaped(rest.lines().next().unwrap_or_default(), "\\x", 2, 16);
        self.line((of_record.unwrap_or(0), Duration::from_micros(micros.unwrap_or(0))), &text);
    }

    fn line(&mut self, (number, at): (u64, Duration), text: &str) {
        if text.contains(" invoked oom-killer: ") {
            self.scene = Scene::default();
        } else if let Some(rest) = text.strip_prefix("memory: usage ") {
            self.scene.memory = used_and_limit(rest);
        } else if let Some(rest) = text.strip_prefix("memory+swap: usage ") {
            self.scene.both = used_and_limit(rest);
        } else if let Some(rest) = text.strip_prefix("oom-kill:") {
            self.scene.victim = Some(rest.to_owned());
        } else if let Some(rest) = text.strip_prefix("Tasks in ") {
            let group = rest.strip_suffix(" are going to be killed due to memory.oom.group set");
            if let (Some(group), Some(first)) = (group, self.kills.last_mut()) {
                first.with_group = true;
                self.together = Some((at, Kill { group: Some(group.to_owned()), ..first.clone() }));
            }
        } else if let Some(rest) = KILLED.iter().find_map(|words| text.strip_prefix(words)) {
            self.killed((number, at), rest);
        }
    }

    /// `24956 (python3) total-vm:90kB, anon-rss:1kB, file-rss:2kB, shmem-rss:0kB, UID:0 pgtables:116kB oom_score_adj:0`.
    fn killed(&mut self, (number, at): (u64, Duration), text: &str) {
        let Some((pid, rest)) = text.split_once(" (") else { return };
        let Some((comm, figures)) = rest.rsplit_once(") total-vm:") else { return };
        let Ok(pid) = pid.parse::<u32>() else { return };
        let figure = |name: &str| -> Option<u64> {
            let text = figures.split_once(name)?.1;
            text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse().ok()
        };
        let resident =
            ["anon-rss:", "file-rss:", "shmem-rss:"].iter().filter_map(|name| figure(name)).sum::<u64>();
        let uid = figure("UID:").and_then(|uid| u32::try_from(uid).ok()).unwrap_or(0);
        // the lines before may be of another one, whose own were not logged
        let scene = std::mem::take(&mut self.scene);
        let end = format!(",task={comm},pid={pid},uid={uid}");
        let victim = scene.victim.as_deref().and_then(|victim| victim.strip_suffix(&end)).and_then(groups);
        let (limited, group) = victim.map_or((None, None), |(limited, group)| (limited, Some(group)));
        // pages may have become free between the refusal and the line
        let both = scene.memory.into_iter().chain(scene.both);
        let limit = both.min_by_key(|(used, limit)| limit.saturating_sub(*used)).map(|(_, limit)| limit);
        let mut kill = Kill {
            boot: self.id.clone(),
            number,
            at: u64::try_from((self.boot + at).as_millis()).unwrap_or(u64::MAX),
            pid,
            comm: comm.to_owned(),
            uid,
            resident: Bytes(resident * 1024),
            limit: limit.filter(|_| limited.is_some()).map(|limit| Bytes(limit * 1024)),
            group,
            limited,
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

/// The group whose limit was met, if it is one, and the victim's, of `constraint=…,cpuset=X,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b` or
/// `…,mems_allowed=0,global_oom,task_memcg=/a/b`. Who names groups may write anything into them: `None` if the text can be read in two ways.
fn groups(text: &str) -> Option<(Option<String>, String)> {
    let mut found: Option<(Option<String>, String)> = None;
    for (at, key) in text.match_indices(",task_memcg=") {
        let (before, group) = (&text[..at], &text[at + key.len()..]);
        let is_mems = |text: &str| {
            let mems = text.rsplit_once("mems_allowed=").map(|(_, mems)| mems);
            mems.is_some_and(|mems| mems.bytes().all(|byte| byte.is_ascii_digit() || b"-,".contains(&byte)))
        };
        let of_group = before.match_indices(",oom_memcg=").filter_map(|(at, key)| {
            let limited = &before[at + key.len()..];
            let is_so = limited.starts_with('/')
                && is_mems(&before[..at])
                && units::group_path::is_at_or_below(group, limited);
            is_so.then(|| Some(limited.to_owned()))
        });
        let of_machine = before.strip_suffix(",global_oom").filter(|before| is_mems(before)).map(|_| None);
        for limited in of_group.chain(of_machine) {
            if found.replace((limited, group.to_owned())).is_some() {
                return None;
            }
        }
    }
    found
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
        let mut reader = Reader::new("B".to_owned(), Duration::from_secs(1000));
        log.lines().for_each(|line| reader.record(line));
        reader.kills
    }

    #[test]
    fn a_kill_is_named_with_its_group_and_the_limit_that_was_met() {
        let [first, second] = read(&LOG.replace("{p}", "6")).try_into().unwrap();
        let expected = Kill {
            boot: "B".to_owned(),
            number: 5,
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
        assert_eq!(&first, &expected);
        // the kernel limits how often it says why
        assert_eq!((second.pid, second.group, second.limited, second.limit), (14299, None, None, None));
        // pages became free before the line was written
        let [freed, _] =
            read(&LOG.replace("{p}", "6").replace("usage 24576kB", "usage 24448kB")).try_into().unwrap();
        assert_eq!(freed.limit, first.limit);
        // a program may write the same into the log
        assert_eq!(read(&LOG.replace("{p}", "12")), []);
    }

    /// Each is what somebody can call a group or a program.
    #[test]
    fn names_that_look_like_parts_of_a_line_are_names() {
        for (limited, group, comm) in [
            ("/own", "/own/foo,task_memcg=/victim/sub", "tail"),
            ("/c,task_memcg=", "/c,task_memcg=", "tail"),
            ("/c,oom_memcg=x", "/c,oom_memcg=x", "tail"),
            ("/t", "/t", "a,task=b"),
            ("/t", "/t", "x,pid=1,uid=0"),
            ("/a,global_oom", "/a,global_oom/b", ") total-vm:"),
            ("/rf-\u{fc}", "/rf-\u{fc}/foo\\x2dbar.service", "\u{e9}"),
        ] {
            let text = format!(
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,3,oom_memcg={limited},task_memcg={group},task={comm},pid=7,uid=5"
            );
            let killed = format!(
                "Memory cgroup out of memory: Killed process 7 ({comm}) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:5 pgtables:1kB oom_score_adj:0"
            );
            let escaped = |text: &str| {
                let one = |byte: u8| match byte {
                    b' '..=b'~' if byte != b'\\' => char::from(byte).to_string(),
                    byte => format!("\\x{byte:02x}"),
                };
                text.bytes().map(one).collect::<String>()
            };
            let [kill] = read(&format!("6,1,5,-;{}\n6,2,6,-;{}\n", escaped(&text), escaped(&killed)))
                .try_into()
                .unwrap();
            let seen = (kill.limited.as_deref(), kill.group.as_deref(), kill.comm.as_str());
            assert_eq!(seen, (Some(limited), Some(group), comm));
        }
        // what fits two groups is neither's
        let text = ",mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,mems_allowed=0,oom_memcg=/a";
        assert_eq!(groups(text), None);
        // a mount's unknown parameter, which anybody can log
        assert_eq!(read("3,1,5,-;tmpfs: Unknown parameter 'Killed process 7 (x) total-vm:1kB'"), []);
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
            "6,1,5,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=t,pid=7,uid=0\n"
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

//! The text of `/proc/PID/stat`, taken apart (proc_pid_stat(5)). Its second field is a name that may hold anything, also
//! blanks and brackets.

/// One read of the file. What was cut short, as the process ended meanwhile, is `None`.
#[derive(Debug, Clone, Copy)]
pub struct ProcStat<'t> {
    pid: &'t [u8],
    name: &'t [u8],
    behind: &'t [u8],
}

impl<'t> ProcStat<'t> {
    /// `None` where the name does not end.
    pub fn parse(text: &'t [u8]) -> Option<ProcStat<'t>> {
        let begin = text.iter().position(|byte| *byte == b'(')?;
        let end = text.iter().rposition(|byte| *byte == b')').filter(|end| *end > begin)?;
        Some(ProcStat {
            pid: text[..begin].trim_ascii(),
            name: &text[begin + 1..end],
            behind: &text[end + 1..],
        })
    }

    /// The process, or the thread.
    pub fn pid(&self) -> Option<u32> {
        number(self.pid)
    }

    /// Its name, as the program chose it.
    pub fn name(&self) -> &'t [u8] {
        self.name
    }

    /// `R`, `S`, `D`, `Z` and so on.
    pub fn state(&self) -> Option<char> {
        Some(char::from(*self.field(3)?.first()?))
    }

    /// The parent; 0 for the first of a PID namespace.
    pub fn parent(&self) -> Option<u32> {
        number(self.field(4)?)
    }

    /// The leader of its session (setsid(2)).
    pub fn session(&self) -> Option<u32> {
        number(self.field(6)?)
    }

    /// The kernel's flags, `PF_` in linux/sched.h.
    pub fn flags(&self) -> Option<u64> {
        number(self.field(9)?)
    }

    /// CPU time of all its threads, in clock ticks.
    pub fn ticks(&self) -> Option<u64> {
        self.sum(14)
    }

    /// CPU time of the children that it waited for, in clock ticks.
    pub fn ticks_waited_for(&self) -> Option<u64> {
        self.sum(16)
    }

    /// When it started, in clock ticks since boot: together with the number, this identifies a process.
    pub fn started(&self) -> Option<u64> {
        number(self.field(22)?)
    }

    /// The CPU that it ran on last.
    pub fn last_cpu(&self) -> Option<u32> {
        number(self.field(39)?)
    }

    /// The scheduling policy, `SCHED_` in sched(7).
    pub fn policy(&self) -> Option<u32> {
        number(self.field(41)?)
    }

    /// Its priority among real-time tasks; 0 for all others.
    pub fn realtime_priority(&self) -> Option<u32> {
        number(self.field(40)?)
    }

    /// By its number in the manual page, from 3 on.
    fn field(&self, number: usize) -> Option<&'t [u8]> {
        let mut words = self.behind.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.nth(number - 3)
    }

    /// Time in user mode and the time in the kernel behind it.
    fn sum(&self, user: usize) -> Option<u64> {
        number::<u64>(self.field(user)?)?.checked_add(number(self.field(user + 1)?)?)
    }
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"42 (a) R 1 (x)) S 7 42 99 0 -1 4194304 1 0 0 0 1 2 3 4 20 0 1 0 12345 1000 10 \
        18446744073709551615 1 1 1 1 1 0 0 0 0 0 0 0 17 3 90 1 0 0 0\n";

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let stat = ProcStat::parse(TEXT).unwrap();
        assert_eq!((stat.pid(), stat.name(), stat.state()), (Some(42), &b"a) R 1 (x)"[..], Some('S')));
        assert_eq!((stat.parent(), stat.session(), stat.flags()), (Some(7), Some(99), Some(4_194_304)));
        assert_eq!((stat.ticks(), stat.ticks_waited_for(), stat.started()), (Some(3), Some(7), Some(12_345)));
        assert_eq!((stat.last_cpu(), stat.policy()), (Some(3), Some(1)));
    }

    #[test]
    fn what_was_cut_short_says_nothing() {
        for end in 0..TEXT.len() - 1 {
            let stat = ProcStat::parse(&TEXT[..end]);
            assert_eq!(stat.and_then(|stat| stat.started()).filter(|started| *started > 12_345), None);
        }
        assert!(ProcStat::parse(b"").is_none() && ProcStat::parse(b"1 )x(").is_none());
    }
}

//! Processes that a rule takes and that are left alone, as somebody put them into another group: named in the log, which they
//! must not fill.

use std::collections::{BTreeMap, HashSet};

use tracing::info;

/// Rules with a group of which it is logged at most that processes stay there.
const MOST: usize = 1000;
/// Processes of each that are named.
const PIDS: usize = 5;

/// Those of the last look, and of which rules and groups it was logged.
#[derive(Debug, Default)]
pub(crate) struct Stays {
    new: BTreeMap<(usize, String), Vec<u32>>,
    logged: HashSet<(usize, String)>,
}

impl Stays {
    /// A rule takes this process; the group it stays in, by its name for people.
    pub fn add(&mut self, pid: u32, rule: usize, group: String) {
        self.new.entry((rule, group)).or_default().push(pid);
    }

    /// The rules are others.
    pub fn forget(&mut self) {
        self.logged.clear();
    }

    /// Logs of each rule and group once. `origin`: where a rule stands. Returns how many processes stay.
    pub fn log(&mut self, origin: impl Fn(usize) -> String) -> usize {
        let new = std::mem::take(&mut self.new);
        let count = new.values().map(Vec::len).sum();
        for ((rule, group), pids) in new {
            if self.logged.len() < MOST && self.logged.insert((rule, group.clone())) {
                let words = words(&origin(rule), &group, &pids);
                info!(processes = pids.len(), "{words}");
            }
        }
        count
    }
}

/// Why they are left alone, and how one is not any more.
fn words(origin: &str, group: &str, pids: &[u32]) -> String {
    let shown: Vec<String> = pids.iter().take(PIDS).map(u32::to_string).collect();
    let first = pids.first().copied().unwrap_or_default();
    let more = pids.len().saturating_sub(PIDS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "{origin}left alone: process {}{more} in group '{group}', where somebody put it, or where it was before the daemon; \
         hint: ringfence classify -n {first} shows its rule's group, ringfence classify {first} puts it there",
        shown.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_and_group_is_logged_once_until_the_rules_are_others() {
        let mut stays = Stays::default();
        let asked = std::cell::RefCell::new(Vec::new());
        let mut round = |pids: &[u32], forget: bool| {
            if forget {
                stays.forget();
            }
            pids.iter().for_each(|pid| stays.add(*pid, 3, "batch".to_owned()));
            let count = stays.log(|rule| {
                asked.borrow_mut().push(rule);
                String::new()
            });
            (count, asked.take().len())
        };
        assert_eq!(round(&[1, 2], false), (2, 1));
        assert_eq!(round(&[1, 2, 4], false), (3, 0));
        assert_eq!(round(&[1], true), (1, 1));
        assert_eq!(round(&[], true), (0, 0));
    }

    #[test]
    fn the_first_are_named_with_the_commands_that_change_it() {
        let text = words("layout.toml:3:1: ", "batch", &[10, 11, 12, 13, 14, 15, 16]);
        assert!(text.starts_with(
            "layout.toml:3:1: left alone: process 10, 11, 12, 13, 14 and 2 more in group 'batch'"
        ));
        assert!(text.ends_with("ringfence classify 10 puts it there"), "{text}");
    }
}

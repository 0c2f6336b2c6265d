//! Respects what was placed by hand: a child stays where its parent was put by hand or by `run`, unless a rule says
//! otherwise. Pure: what is seen and what is remembered in, what to do and what to remember out.
//!
//! When does a rule say otherwise? A manual move overrules the rule that fitted the process then, for it and for its
//! children. Only another rule, which fits the child but did not fit the process that was moved, counts: `root`'s shell
//! is put into `admin`, and a child of it that becomes `oracle` goes where oracle's rule leads; but `oracle`'s shell in
//! `batch`, put there against that very rule, keeps its children in `batch`.
//!
//! That somebody placed a process is seen by comparing where it is with where it was when it was last decided on. Only
//! groups of ours count, in the hierarchies that the rule is about: a login that systemd moves to its session's scope
//! was placed by nobody, and neither was a process that was moved out of all our groups.

use crate::{Decision, Present};

/// What is remembered of a process since it was last decided on. A fork hands it on: the child's is a copy of its
/// parent's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// Where it was left, or put by a rule.
    pub present: Present,
    /// The rule that fitted it then, followed or overruled. After a reload, the one that fits it now.
    pub rule: Option<usize>,
    /// It, or the parent that it has its group from, was put there by hand.
    pub by_hand: bool,
}

/// Does a rule's decision stand against a hand that placed the process? Returns what to do and what to remember;
/// after a move, the caller sets [`Memory::present`] to where the process then is.
///
/// `now` and `parent`: where the process and its parent are ([`Present::only`] in the rule's hierarchies). `memory`:
/// `None` if nothing is remembered of it, as after a start: then a group that it is in and that no rule leads it to
/// (`there` false) was somebody's choice, and it stays there.
pub fn settle(
    decision: Decision,
    now: &Present,
    parent: Option<&Present>,
    memory: Option<&Memory>,
    there: bool,
) -> (Decision, Memory) {
    let unchanged = memory.is_some_and(|memory| memory.present == *now);
    let known_by_hand = memory.is_some_and(|memory| memory.by_hand && unchanged);
    let Decision::To { rule } = decision else {
        let memory = Memory { present: now.clone(), rule: decision.rule(), by_hand: known_by_hand };
        return (decision, memory);
    };
    let moved = !unchanged && !now.is_empty() && !there;
    // who is beside his parent came there with it
    let itself = moved && parent != Some(now);
    let overruled = (moved || known_by_hand) && memory.is_none_or(|memory| memory.rule == Some(rule));
    let stays = itself || overruled;
    let memory = Memory { present: now.clone(), rule: Some(rule), by_hand: stays };
    (if stays { Decision::Stays { rule } } else { decision }, memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(group: &str) -> Present {
        if group.is_empty() { Present::default() } else { [(0, group.to_owned())].into_iter().collect() }
    }

    fn memory(group: &str, rule: Option<usize>, by_hand: bool) -> Memory {
        Memory { present: at(group), rule, by_hand }
    }

    /// Rule 0 leads to `db`, rule 1 to `pg`.
    fn settled(rule: usize, now: &str, parent: &str, memory: Option<&Memory>) -> (bool, Memory) {
        let there = now == ["db", "pg"][rule];
        let (decision, memory) = settle(Decision::To { rule }, &at(now), Some(&at(parent)), memory, there);
        (decision == Decision::Stays { rule }, memory)
    }

    #[test]
    fn a_child_stays_where_its_parent_was_put_by_hand_against_the_same_rule() {
        // oracle's shell in db by rule 0; somebody moves it to batch; it forks, and the child execs
        let shell = memory("db", Some(0), false);
        let (stays, child) = settled(0, "batch", "batch", Some(&shell));
        assert!(stays && child.by_hand);
        // the child's children too, and for good
        let (stays, grandchild) = settled(0, "batch", "batch", Some(&child));
        assert!(stays && grandchild == child);
    }

    #[test]
    fn a_rule_that_did_not_hold_for_the_parent_says_otherwise() {
        // root's shell, which no rule takes, is put into admin; its child becomes oracle
        let shell = memory("", None, false);
        let (stays, child) = settled(0, "admin", "admin", Some(&shell));
        assert!(!stays && !child.by_hand);
        // oracle's shell in batch by hand; its child runs postgres, which has a rule of its own
        let shell = memory("batch", Some(0), true);
        assert!(!settled(1, "batch", "batch", Some(&shell)).0);
    }

    #[test]
    fn what_run_starts_stays_whatever_its_program() {
        // `run batch -- postgres` from a shell that is elsewhere
        for shell in [memory("", None, false), memory("db", Some(0), false)] {
            let parent = shell.present.at(0).unwrap_or_default().to_owned();
            let (stays, program) = settled(1, "batch", &parent, Some(&shell));
            assert!(stays && program.by_hand && program.rule == Some(1));
            assert!(settled(1, "batch", "batch", Some(&program)).0, "its children too");
            assert!(!settled(0, "batch", "batch", Some(&program)).0, "unless a rule says otherwise");
        }
    }

    #[test]
    fn who_was_put_by_a_rule_follows_the_rules() {
        let server = memory("db", Some(0), false);
        assert!(!settled(0, "db", "db", Some(&server)).0);
        assert!(!settled(1, "db", "db", Some(&server)).0, "another program in a child");
        assert!(!settled(0, "", "", Some(&memory("", None, false))).0, "a login");
    }

    #[test]
    fn out_of_all_our_groups_is_nowhere() {
        assert!(!settled(0, "", "", Some(&memory("db", Some(0), false))).0);
    }

    #[test]
    fn without_a_memory_a_group_that_no_rule_leads_to_was_chosen() {
        let (stays, remembered) = settled(0, "batch", "", None);
        assert!(stays && remembered.by_hand);
        let (stays, remembered) = settled(0, "db", "", None);
        assert!(!stays && !remembered.by_hand, "there already");
        assert!(!settled(0, "", "", None).0);
    }

    #[test]
    fn a_hand_that_follows_the_rule_is_no_other_hand() {
        // moved by hand to where the rule leads: from then on the rules hold
        let (stays, remembered) = settled(0, "db", "", Some(&memory("", None, false)));
        assert!(!stays && !remembered.by_hand);
    }

    #[test]
    fn no_rule_and_ignored_processes_are_remembered_as_they_are() {
        let placed = memory("batch", Some(0), true);
        let (decision, remembered) = settle(Decision::NoRule, &at("batch"), None, Some(&placed), false);
        assert_eq!((decision, remembered), (Decision::NoRule, memory("batch", None, true)));
    }
}

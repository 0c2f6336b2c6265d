//! All keys, and what the marks mean.

use crate::model::{Mode, Model};

/// The lines of the help.
pub(super) fn lines(model: &Model) -> Vec<&'static str> {
    let mut lines = vec![
        "Everywhere",
        "  t  groups       m  machine       ?  these keys       q  end",
        "  arrows, j k, PgUp PgDn, g G: go           Esc  back",
        "",
        "Groups",
        "  Return  the group's page: settings, tasks, limits",
        "  Space, left and right, + -: fold and unfold",
        "  /  filter by name     s  sort by a figure, not as a tree",
        "",
        "Changes, as ringfence set makes them: all or nothing, read back",
        "  e  change a setting: SETTING=VALUE by any v1 or v2 name. What",
        "     would be written is shown meanwhile; Return writes it",
        "  f  freeze or thaw all tasks of the group, after a question",
        "  u  put back the last change, then the one before",
        "",
        "Marks",
        "  bars: use against what the group may use, by its limits and",
        "        those of the groups above; without any, of the machine",
        "  F  frozen    P  partition: CPUs of its own",
        "  !  a limit stopped it since the last sample",
        "  ELASTIC: CPUs now/least-most, -1 lends one, +1 borrows one",
        "  WAIT: share of the time in which something waited for",
        "        c a CPU, m memory, i I/O",
        "  INTR/s: interrupts and softirqs on CPUs of its own",
        "",
        "Machine",
        "  every CPU: number, letter of the group that has it, load",
        "  A alone, a with others, + several groups, . any group",
        "  Return  the page of that group",
    ];
    if model.mode != Mode::Live {
        lines.splice(
            3..3,
            [
                "",
                "The log",
                "  left, right  a sample back or on      Space  play, stop",
                "  [ ]  a minute back or on              { }  an hour",
            ],
        );
    }
    lines
}

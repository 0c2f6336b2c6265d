//! Why device rules can't be read or set on cgroup v2, in words: no file gives an errno that would say.

use std::path::Path;

use rustix::io::Errno;
use settings::devices::{Behavior, DeviceAccess};

use crate::bpf::RECORD;

/// What stands in the way.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The kernel's answer.
    Kernel(Errno),
    /// No rule.
    NotARule,
    /// A rule for all devices, and groups below.
    HasChildren,
    /// The parent may not use what was to be allowed; the parent's rules.
    Parent(DeviceAccess),
    /// The rules are on record, their program is not there.
    Detached,
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Trouble {
        Trouble::Kernel(errno)
    }
}

impl Trouble {
    /// The kernel's answer, or what v1 would answer.
    pub fn errno(&self) -> Errno {
        match self {
            Trouble::Kernel(errno) => *errno,
            Trouble::NotARule | Trouble::HasChildren => Errno::INVAL,
            Trouble::Parent(_) => Errno::PERM,
            Trouble::Detached => Errno::NOENT,
        }
    }

    /// The cause and what fixes it; `None` where the errno has no meaning of its own here.
    pub fn explained(&self, group: &Path, file: &str) -> Option<(String, String)> {
        let group = group.display();
        let (cause, hint) = match self {
            Trouble::NotARule => (
                "a rule is b or c, MAJOR:MINOR with * for all, and some of r, w and m; or a for all".to_owned(),
                format!("ringfence settings {file} shows an example"),
            ),
            Trouble::HasChildren => (
                "there are groups below it, which a rule for all devices does not reach".to_owned(),
                "set it before groups are made below, or on each of those".to_owned(),
            ),
            Trouble::Parent(above) => {
                (format!("its parent may itself use {}", in_words(above)), "allow it there first".to_owned())
            }
            Trouble::Detached => (
                "the rules are on record, but their program is not attached any more".to_owned(),
                "set any of them again, which attaches it".to_owned(),
            ),
            Trouble::Kernel(Errno::PERM | Errno::ACCESS) => (
                "cgroup v2 takes device rules as a BPF program, and this user may neither list nor attach one here: \
                 that takes CAP_SYS_ADMIN outside of containers, and no program attached as the only one"
                    .to_owned(),
                format!("call it as root of the host; bpftool cgroup show {group} lists what is attached"),
            ),
            Trouble::Kernel(Errno::INVAL | Errno::NOSYS) => (
                "this kernel takes no device program, which cgroup v2 has in place of device files".to_owned(),
                "it takes CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF: grep BPF /boot/config-$(uname -r)".to_owned(),
            ),
            Trouble::Kernel(Errno::OPNOTSUPP) => (
                "this kernel keeps no extended attributes of groups, which the rules are recorded in".to_owned(),
                "cgroup v2 has them since Linux 4.6".to_owned(),
            ),
            Trouble::Kernel(Errno::TOOBIG | Errno::NOSPC | Errno::RANGE) => (
                "the group has more exceptions than a program and its record can hold".to_owned(),
                "join them: MAJOR:* for all devices of a driver".to_owned(),
            ),
            Trouble::Kernel(Errno::BADMSG) => (
                format!("the record {RECORD} of {group} is not one of ringfence's"),
                format!("setfattr -x {RECORD} {group}; then set the rules again"),
            ),
            Trouble::Kernel(_) => return None,
        };
        Some((cause, hint))
    }
}

/// `all devices but c 1:3 w`, `only c 1:3 rwm, c 1:5 rwm`.
fn in_words(access: &DeviceAccess) -> String {
    let all = access.exceptions();
    let shown: Vec<String> = all.iter().take(4).map(ToString::to_string).collect();
    let more = if all.len() > 4 { format!(" and {} more", all.len() - 4) } else { String::new() };
    let shown = format!("{}{more}", shown.join(", "));
    match access.behavior() {
        Behavior::DefaultAllow if all.is_empty() => "all devices".to_owned(),
        Behavior::DefaultAllow => format!("all devices but {shown}"),
        Behavior::DefaultDeny if all.is_empty() => "no device".to_owned(),
        Behavior::DefaultDeny => format!("only {shown}"),
    }
}

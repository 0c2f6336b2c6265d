//! On which NUMA nodes the buffer cache lies: the memory policy of this process, set before its first page is touched
//! (set_mempolicy(2)), and where the pages then were (`/proc/self/numa_maps`). Moves no page later.
#![allow(unsafe_code, reason = "set_mempolicy(2) has no safe wrapper; the one call says what holds")]

use std::{collections::BTreeMap, fmt, fs, io};

use units::NodeSet;

use crate::Error;

/// Where pages are taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placement {
    /// As the kernel does by itself: on the node of the CPU that touches a page first.
    FirstTouch,
    /// Only from these nodes.
    Bind(NodeSet),
    /// From these nodes in turns.
    Interleave(NodeSet),
}

impl Placement {
    /// `first-touch`, `bind:NODES`, `interleave` (all nodes of the machine) or `interleave:NODES`.
    ///
    /// # Errors
    /// It is none of these, or names a node that is not among the machine's.
    pub fn parse(text: &str, machine: &NodeSet) -> Result<Placement, Error> {
        let wrong = |reason: String| Error::Option { option: "--placement".to_owned(), reason };
        let nodes = |list: &str| {
            let nodes: NodeSet =
                list.parse().map_err(|error| wrong(format!("'{}': {error}", list.escape_debug())))?;
            match nodes.difference(machine).first() {
                None if !nodes.is_empty() => Ok(nodes),
                None => Err(wrong("no node is named".to_owned())),
                Some(missing) => Err(wrong(format!("this machine has no node {missing} (it has {machine})"))),
            }
        };
        match text.split_once(':') {
            None if text == "first-touch" => Ok(Placement::FirstTouch),
            None if text == "interleave" => Ok(Placement::Interleave(machine.clone())),
            Some(("bind", list)) => nodes(list).map(Placement::Bind),
            Some(("interleave", list)) => nodes(list).map(Placement::Interleave),
            _ => Err(wrong(format!(
                "'{}' is none of first-touch, bind:NODES, interleave[:NODES]",
                text.escape_debug()
            ))),
        }
    }

    /// Makes it the calling thread's policy, and that of all threads which it starts.
    ///
    /// # Errors
    /// The kernel refused: outside the cpuset's nodes, or no NUMA in this kernel.
    pub fn apply(&self) -> Result<(), Error> {
        match self {
            Placement::FirstTouch => Ok(()),
            Placement::Bind(nodes) => set_policy(libc::MPOL_BIND, nodes),
            Placement::Interleave(nodes) => set_policy(libc::MPOL_INTERLEAVE, nodes),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::FirstTouch => f.write_str("first-touch"),
            Placement::Bind(nodes) => write!(f, "bind:{nodes}"),
            Placement::Interleave(nodes) => write!(f, "interleave:{nodes}"),
        }
    }
}

fn set_policy(mode: i32, nodes: &NodeSet) -> Result<(), Error> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    let mut mask: Vec<libc::c_ulong> = vec![0; nodes.last().unwrap_or(0) / BITS + 1];
    for node in nodes.iter() {
        if let Some(word) = mask.get_mut(node / BITS) {
            *word |= 1 << (node % BITS);
        }
    }
    // the kernel takes one bit less than it is reported
    let bits = mask.len() * BITS + 1;
    // SAFETY: the kernel reads `bits - 1` bits of the mask, which is that long, and writes nothing
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), bits) } {
        0 => Ok(()),
        _ => Err(Error::System { what: "cannot set the memory policy", source: io::Error::last_os_error() }),
    }
}

/// Bytes of this process per node; empty in a kernel without NUMA.
pub(super) fn bytes_per_node() -> BTreeMap<u32, u64> {
    per_node(&fs::read_to_string("/proc/self/numa_maps").unwrap_or_default())
}

/// Sums `N0=123` of all lines, each times its page size.
fn per_node(text: &str) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let number = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
        let page = number("kernelpagesize_kB=").unwrap_or(4) << 10;
        for word in line.split(' ') {
            let Some((node, pages)) = word.strip_prefix('N').and_then(|word| word.split_once('=')) else {
                continue;
            };
            if let (Ok(node), Ok(pages)) = (node.parse::<u32>(), pages.parse::<u64>()) {
                *sums.entry(node).or_insert(0) += pages * page;
            }
        }
    }
    sums
}

/// Bytes of this process on transparent huge pages.
pub(super) fn huge_page_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_names_nodes_that_the_machine_has() {
        let machine: NodeSet = "0-3".parse().unwrap();
        for text in ["first-touch", "bind:1", "interleave:0-1", "interleave:0-3"] {
            assert_eq!(Placement::parse(text, &machine).unwrap().to_string(), text);
        }
        assert_eq!(Placement::parse("interleave", &machine).unwrap().to_string(), "interleave:0-3");
        let error = |text| Placement::parse(text, &machine).unwrap_err().to_string();
        assert_eq!(error("bind:2-5"), "--placement: this machine has no node 4 (it has 0-3)");
        assert_eq!(error("bind:"), "--placement: no node is named");
        assert_eq!(
            error("bind"),
            "--placement: 'bind' is none of first-touch, bind:NODES, interleave[:NODES]"
        );
    }

    #[test]
    fn the_kernel_takes_a_policy_of_its_own_node() {
        // of a thread of its own: the others keep theirs
        let set = std::thread::spawn(|| {
            let nodes: NodeSet = "0".parse().unwrap();
            Placement::Bind(nodes.clone()).apply().and_then(|()| Placement::Interleave(nodes).apply())
        });
        match set.join().unwrap() {
            Ok(()) => {}
            Err(Error::System { source, .. }) if source.raw_os_error() == Some(libc::ENOSYS) => {}
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn pages_are_summed_per_node_with_their_size() {
        let text = "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                    7f10 default file=/bin/x mapped=5 N1=5 kernelpagesize_kB=4\n\
                    7f20 bind:0 huge anon=1 N0=1 kernelpagesize_kB=2048\n7f30 default\n";
        assert_eq!(per_node(text), BTreeMap::from([(0, (2 << 20) + 4096), (1, 7 * 4096)]));
    }
}

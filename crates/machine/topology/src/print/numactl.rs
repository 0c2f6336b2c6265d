//! Prints what `numactl --hardware` prints, byte for byte, blanks at the ends of lines included.
//!
//! Source: numactl `numactl.c`, `hardware()`, `print_distances()` and `fmt_mem()`, versions 0.8 to 2.0.19.

use units::Bytes;

use crate::{Machine, Node, NumactlStyle, TopologyError};

/// The listing, in the widths of the one that was read, else those of numactl up to 2.0.18. What is not known of
/// memory and distances is printed as numactl prints it when the kernel does not say.
///
/// # Errors
/// [`TopologyError::Missing`] if the nodes are not known.
pub fn numactl(machine: &Machine) -> Result<String, TopologyError> {
    if machine.nodes.is_empty() {
        return Err(TopologyError::Missing {
            format: "numactl",
            missing: "the NUMA nodes".to_owned(),
            source_name: machine.source_name(),
        });
    }
    let mut out = format!("available: {} nodes ({})\n", machine.nodes.len(), machine.node_set());
    for node in &machine.nodes {
        let cpus: String = node.cpus.iter().map(|cpu| format!(" {cpu}")).collect();
        let id = node.id;
        out += &format!("node {id} cpus:{cpus}\n");
        out += &format!("node {id} size: {}\n", memory(node.memory_total));
        out += &format!("node {id} free: {}\n", memory(node.memory_free));
    }
    out += &distances(machine).unwrap_or_else(|| "No distance information available.\n".to_owned());
    Ok(out)
}

/// Rounded down to MiB.
fn memory(bytes: Option<Bytes>) -> String {
    bytes.map_or("<not available>".to_owned(), |bytes| format!("{} MB", bytes.0 >> 20))
}

fn distances(machine: &Machine) -> Option<String> {
    let style = machine.numactl_style.unwrap_or_default();
    let ids: Vec<usize> = machine.nodes.iter().map(|node| node.id).collect();
    let row = |node: &Node| -> Option<String> {
        let values = node.distances.as_ref()?.iter().map(|distance| cell(style, *distance as usize));
        Some(format!("{}{}\n", row_label(style, node.id), values.collect::<String>()))
    };
    let rows: String = machine.nodes.iter().map(row).collect::<Option<_>>()?;
    Some(format!("node distances:\n{}\n{rows}", header(style, &ids)))
}

/// The line above the distances.
pub(crate) fn header(style: NumactlStyle, ids: &[usize]) -> String {
    let start = match style {
        NumactlStyle::Classic => "node ",
        NumactlStyle::Wide => "node  ",
        NumactlStyle::Narrow => "node",
    };
    ids.iter().fold(start.to_owned(), |line, id| line + &cell(style, *id))
}

fn row_label(style: NumactlStyle, id: usize) -> String {
    match style {
        NumactlStyle::Narrow => format!("{id:>3}:"),
        NumactlStyle::Classic | NumactlStyle::Wide => format!("{}: ", signed(style, id)),
    }
}

fn cell(style: NumactlStyle, number: usize) -> String {
    match style {
        NumactlStyle::Narrow => format!(" {number:>2}"),
        NumactlStyle::Classic | NumactlStyle::Wide => format!("{} ", signed(style, number)),
    }
}

/// C's `% 3d` (`% 4d` in the wide style): a blank where a sign would be, then padded.
fn signed(style: NumactlStyle, number: usize) -> String {
    let width = if style == NumactlStyle::Wide { 4 } else { 3 };
    format!("{:>width$}", format!(" {number}"))
}

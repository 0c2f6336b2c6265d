//! Since when the table says that a file is there, beside the files of the kernel that runs. A file that was backported
//! would show, too: it is the row that is wrong then.

use std::collections::BTreeSet;

use settings::{Controller, Version};

use super::{Case, case, world::World};

pub fn cases() -> Vec<Case> {
    vec![case("the_table_knows_since_when_each_file_is_there", |world| world.fake().is_none(), since)]
}

/// v2 files that a kernel may be built without: Debian's cloud kernels, and which of these do so.
const OPTIONAL: &[&str] = &["cpu.uclamp.", "memory.zswap.", "io.prio.class", "io.latency", "irq.pressure"];

fn release(text: &str) -> (u32, u32) {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn since(world: &World) {
    let running = world.kernel().outside("/proc/sys/kernel/osrelease".as_ref()).expect("the release");
    let running = release(&running);
    let all: Vec<Controller> = Controller::ALL.into_iter().filter(|one| world.has(*one)).collect();
    let group = world.create("", &all);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for setting in settings::all() {
        let Some(version) = world.version(setting.controller).filter(|_| world.has(setting.controller))
        else {
            continue;
        };
        let Some(binding) = setting.side(version).binding() else { continue };
        let seat = world.seat(&group, setting.controller);
        let files = |path: &str| world.kernel().files(seat.at, path).expect("the files of a group");
        let there: BTreeSet<String> = files(&seat.path).into_iter().chain(files("")).collect();
        for file in binding.files {
            let due = release(binding.since) <= running;
            let optional = OPTIONAL.iter().any(|prefix| file.starts_with(prefix));
            match (there.contains(&file.replace("<size>", "2MB")), due) {
                (true, false) => wrong.push(format!("{file} is there before {}", binding.since)),
                // v1 loses files in time
                (false, true) if !optional && version == Version::V2 => {
                    wrong.push(format!("{file} is not there, though since {}", binding.since));
                }
                _ => seen += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "on {}.{}: {wrong:#?}", running.0, running.1);
    assert!(seen > 0);
}

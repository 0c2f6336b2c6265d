//! What can be written to a file, and what is read back: rows of steps, done in order in a new group. A number of
//! the machine's is written `$D` (a whole disk).

mod cpu;
mod memory;

use kernel::GroupName;
use rustix::io::Errno;
use settings::{Controller, Version};

use super::world::{Done, World, refused};

/// One write.
pub struct Step {
    file: &'static str,
    text: &'static str,
    outcome: Outcome,
}

enum Outcome {
    /// Taken; the file (or another one) then holds this.
    Reads(&'static str, &'static str),
    /// Refused, with a part of the cause in words.
    Refused(Errno, &'static str),
}

/// A write that is taken, and what the file then holds.
const fn ok(file: &'static str, text: &'static str, reads: &'static str) -> Step {
    Step { file, text, outcome: Outcome::Reads(file, reads) }
}

/// A write that is taken, and what another file then holds.
const fn shows(file: &'static str, text: &'static str, other: &'static str, reads: &'static str) -> Step {
    Step { file, text, outcome: Outcome::Reads(other, reads) }
}

/// A write that is refused, and a part of the explained cause.
const fn no(file: &'static str, text: &'static str, errno: Errno, cause: &'static str) -> Step {
    Step { file, text, outcome: Outcome::Refused(errno, cause) }
}

pub struct Row {
    pub name: &'static str,
    controller: Controller,
    version: Version,
    steps: &'static [Step],
}

const fn row(name: &'static str, controller: Controller, version: Version, steps: &'static [Step]) -> Row {
    Row { name, controller, version, steps }
}

impl Row {
    /// Does the world have the controller on this version, and every file?
    pub fn fits(&self, world: &World) -> bool {
        world.has(self.controller)
            && world.version(self.controller) == Some(self.version)
            && self.steps.iter().all(|step| world.has_file(self.controller, step.file))
            && (world.disk().is_some() || self.steps.iter().all(|step| !step.text.contains("$D")))
    }

    pub fn run(&self, world: &World) {
        let group = world.create("", &[self.controller]);
        for step in self.steps {
            step.run(world, &group, self.controller);
        }
    }
}

impl Step {
    fn run(&self, world: &World, group: &GroupName, controller: Controller) {
        let disk = world.disk().unwrap_or_default();
        let text = self.text.replace("$D", &disk);
        let result = world.try_write(group, controller, self.file, &text);
        match self.outcome {
            Outcome::Reads(file, reads) => {
                result.done();
                let now = world.read(group, controller, file);
                assert_eq!(now, reads.replace("$D", &disk), "{file} after '{text}' to {}", self.file);
            }
            Outcome::Refused(errno, cause) => {
                refused(result, errno, cause);
            }
        }
    }
}

pub fn rows() -> impl Iterator<Item = &'static Row> {
    cpu::ROWS.iter().chain(memory::ROWS)
}

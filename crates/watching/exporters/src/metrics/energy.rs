//! Idle states of CPUs and energy, as metrics.

use monitor::Energy;

use super::{Writer, families};

/// Their families; none where the machine shows neither.
pub fn write_energy(energy: &Energy, to: &mut Writer<'_>) {
    let mut has_begun = false;
    for (cpu, state, seconds) in energy.idle_seconds() {
        if !std::mem::replace(&mut has_begun, true) {
            to.begin(&families::CPU_IDLE_SECONDS);
        }
        to.sample(&[("cpu", &cpu.to_string()), ("state", state)], seconds);
    }
    has_begun = false;
    for (domain, joules) in energy.joules() {
        if !std::mem::replace(&mut has_begun, true) {
            to.begin(&families::ENERGY);
        }
        to.sample(&[("domain", domain)], joules);
    }
}

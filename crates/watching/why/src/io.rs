//! Time waited for block devices: by `io.max`, by others on the same device, or by the device itself.

use units::{Limit, counted};

use super::{
    advice::Advice,
    answer::{Cause, Certainty, Lost, Number, count},
    blocked::{refault_part, slept},
    causes::Kind,
    facts::{DeviceFacts, Facts, Level, Throttle},
    thresholds::{AT_IO_LIMIT, LEAST_MET, MET_IO_LIMIT},
    words::{percent, set, size, subject, time, whose},
};
use monitor::FigureUnit;

/// The largest number of groups that are named as users of a device.
const NAMED: usize = 4;

pub(crate) fn causes(facts: &Facts) -> Vec<Cause> {
    let waited = waited(facts);
    let limits = facts.levels.iter().flat_map(|level| level.io_max.iter().map(move |of| (level, of)));
    let mut limits: Vec<_> = limits.filter(|(_, of)| part(facts, of) >= AT_IO_LIMIT.at).collect();
    // what is at its limit is slowed by that, and not by a limit that has room left
    if limits.iter().any(|(_, of)| is_met(facts, of)) {
        limits.retain(|(_, of)| is_met(facts, of));
    }
    let mut rest = waited;
    let mut causes = Vec::new();
    if !limits.is_empty() {
        let by_limit = waited.map_or(0.0, |lost| (lost.seconds - at_devices(facts)).max(0.0));
        let each = |seconds: f64| seconds / limits.len() as f64;
        for (level, of) in &limits {
            let measured = waited.map(|lost| Lost { seconds: each(by_limit), ..lost });
            let counted = is_met(facts, of).then(|| Lost {
                seconds: each(not_running(facts) * part(facts, of).min(1.0)),
                known: Certainty::AtMost,
            });
            // what was waited is known where tasks slept for it, at the limit or at a slow device
            let slept = waited.map_or(0.0, |lost| each(lost.counted()));
            let is_asleep = counted.is_none_or(|counted| slept >= counted.counted());
            let lost = measured.filter(|_| is_asleep).or(counted).or(measured);
            causes.extend(lost.map(|lost| limited(facts, level, of, lost)));
        }
        if let Some(rest) = &mut rest {
            rest.seconds -= by_limit;
        }
    }
    causes.extend(rest.map(|rest| elsewhere(facts, rest)).unwrap_or_default());
    causes
}

/// How much of a limit was used over the span; 0 where nothing was done.
fn part(facts: &Facts, of: &Throttle) -> f64 {
    let whole = of.limit as f64 * facts.span.as_secs_f64();
    if whole > 0.0 { of.done as f64 / whole } else { 0.0 }
}

/// Did that much pass that more had to wait? Tasks that read asynchronously (libaio, io_uring) do not sleep for the disk
/// while a limit holds their operations up, so only the count shows it.
fn is_met(facts: &Facts, of: &Throttle) -> bool {
    of.done as f64 >= LEAST_MET.at && part(facts, of) >= MET_IO_LIMIT.at
}

/// Time in which at least one of the group's tasks neither ran nor waited for a CPU: at most that was waited for I/O.
fn not_running(facts: &Facts) -> f64 {
    let span = facts.span.as_secs_f64();
    let cpu = (facts.cpu.used + facts.cpu.waited.unwrap_or_default()).as_secs_f64();
    (facts.tasks.max(1) as f64 * span - cpu).clamp(0.0, span)
}

/// What the operations took at the devices, in seconds; none where that is not known.
fn at_devices(facts: &Facts) -> f64 {
    let of = |device: &DeviceFacts| {
        device.service.unwrap_or_default().as_secs_f64() * (device.rios + device.wios) as f64
    };
    facts.io.devices.iter().map(of).sum()
}

/// What was not waited for a limit was waited for the device, and so for those who use it.
fn elsewhere(facts: &Facts, lost: Lost) -> Vec<Cause> {
    let operations = |device: &&DeviceFacts| device.rios + device.wios;
    let Some(device) = facts.io.devices.iter().max_by_key(operations) else {
        return vec![unknown(facts, lost)];
    };
    let own = operations(&device);
    let others: u64 = device.others.iter().map(|(_, operations)| operations).sum();
    let part = others as f64 / (own + others).max(1) as f64;
    let share = |of: f64| Lost { seconds: lost.seconds * of, ..lost };
    vec![neighbours(facts, device, part, share(part)), alone(device, share(1.0 - part))]
        .into_iter()
        .filter(|cause| cause.lost.is_some_and(|lost| lost.seconds > 0.0))
        .collect()
}

/// Time waited for I/O, without what was read again for want of memory, which is memory's.
fn waited(facts: &Facts) -> Option<Lost> {
    slept(facts).map(|lost| Lost { seconds: lost.seconds * (1.0 - refault_part(facts)), ..lost })
}

fn name(facts: &Facts, of: &Throttle) -> String {
    let device = facts.io.devices.iter().find(|device| device.device == of.device);
    device.map_or_else(|| of.device.to_string(), called)
}

fn called(device: &DeviceFacts) -> String {
    match &device.name {
        Some(name) => format!("/dev/{name}"),
        None => device.device.to_string(),
    }
}

fn limited(facts: &Facts, level: &Level, of: &Throttle, lost: Lost) -> Cause {
    let rate = of.done as f64 / facts.span.as_secs_f64().max(f64::MIN_POSITIVE);
    let is_bytes = of.key.ends_with("bps");
    let unit = if is_bytes { FigureUnit::BytesPerSecond } else { FigureUnit::PerSecond };
    let amount = |number: f64| match is_bytes {
        true => format!("{}/s", size(number as u64)),
        false => format!("{number:.1} operations/s"),
    };
    let doing = if of.key.starts_with('r') { "read" } else { "wrote" };
    let wanted = Limit::At(of.limit.saturating_mul(2));
    let counted = match lost.known {
        Certainty::AtMost => {
            ": that limit was met all the time, though no task slept for it (asynchronous I/O)"
        }
        Certainty::Measured | Certainty::Sampled => "",
    };
    Cause {
        lost: Some(lost),
        numbers: vec![
            Number { name: "rate", value: rate, unit },
            Number { name: of.key, value: of.limit as f64, unit },
        ],
        sentence: format!(
            "{} {doing} {} on {}, and {} lets {} through{counted}",
            subject(facts, level),
            amount(rate),
            name(facts, of),
            whose(facts, level, &format!("io.max ({})", of.key)),
            amount(of.limit as f64)
        ),
        hint: set(facts, &level.group, &[format!("io.max={} {}={wanted}", of.device, of.key)]),
        ..Cause::new(Kind::IoLimit, &level.group)
    }
}

fn neighbours(facts: &Facts, device: &DeviceFacts, part: f64, lost: Lost) -> Cause {
    let named: Vec<String> = device
        .others
        .iter()
        .take(NAMED)
        .map(|(group, operations)| format!("{group} {}", counted(*operations, "operation")))
        .collect();
    let first = device.others.first();
    let advice = Advice::on_device(facts, device);
    Cause {
        lost: Some(lost),
        numbers: vec![
            count("operations", device.rios + device.wios),
            count("others", device.others.iter().map(|(_, operations)| operations).sum()),
            Number { name: "others' part", value: part, unit: FigureUnit::Share },
        ],
        sentence: format!(
            "others did {} of the operations on {}: {}{}",
            percent(part),
            called(device),
            named.join(", "),
            advice.sentence
        ),
        hint: advice.hint,
        choices: advice.choices,
        ..Cause::new(Kind::IoNeighbours, first.map_or(&facts.group, |(group, _)| group))
    }
}

fn alone(device: &DeviceFacts, lost: Lost) -> Cause {
    let waited = time(std::time::Duration::from_secs_f64(lost.seconds.max(0.0)));
    let of = [(device.rios, "read", device.rbytes), (device.wios, "write", device.wbytes)];
    let of = of.into_iter().filter(|(number, ..)| *number > 0);
    let done: Vec<String> =
        of.map(|(number, what, bytes)| format!("{} of {}", counted(number, what), size(bytes))).collect();
    Cause {
        lost: Some(lost),
        numbers: vec![
            count("io.rios", device.rios),
            count("io.wios", device.wios),
            super::answer::bytes("io.rbytes", device.rbytes),
            super::answer::bytes("io.wbytes", device.wbytes),
        ],
        sentence: format!("it waited {waited} for {} itself: {}", called(device), done.join(", ")),
        ..Cause::new(Kind::Device, "/")
    }
}

/// Tasks slept for I/O, and the kernel counts no operation of theirs (file systems over a network; block devices on v1 of
/// Linux 6.1, which counts only where a limit holds).
fn unknown(facts: &Facts, lost: Lost) -> Cause {
    let busiest = facts.io.busiest.as_ref();
    let named = busiest.map(|of| {
        format!(
            "; the busiest device meanwhile was /dev/{} ({})",
            of.name,
            counted(of.operations, "operation")
        )
    });
    Cause {
        lost: Some(lost),
        numbers: busiest.map(|of| count("busiest device", of.operations)).into_iter().collect(),
        sentence: format!(
            "it waited {} for I/O, and the kernel does not count by group for which device{}",
            time(std::time::Duration::from_secs_f64(lost.seconds.max(0.0))),
            named.unwrap_or_default()
        ),
        ..Cause::new(Kind::Device, "/")
    }
}

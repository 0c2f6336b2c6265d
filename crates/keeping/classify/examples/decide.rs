//! How long one decision takes, of the hundred rules that a busy host may have: `cargo run --release -p
//! ringfence-classify --example decide`. Medians of this process, in microseconds; decides nothing else.

use std::time::Instant;

use classify::{Decision, Rules};
use system::{Accounts, ProcessReader};

/// Rules of which the last one takes everybody.
fn rules(line: impl Fn(usize) -> String) -> Rules {
    let lines: String = (0..99).map(|index| line(index) + "\n").collect();
    let reading = layout::read_cgrules("cgrules.conf", &(lines + "* * rest\n"));
    let desired = reading.desired.unwrap_or_default();
    Rules::compile(&desired.all_rules(), &Accounts::new()).0
}

fn median(mut act: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..20_000)
        .map(|_| {
            let start = Instant::now();
            act();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[allow(clippy::print_stdout, reason = "an example's output")]
fn main() {
    let by_user = rules(|index| format!("{} cpu g{index}", 50_000 + index));
    let by_program = rules(|index| format!("*:/usr/bin/program-{index} cpu g{index}"));
    let by_both = rules(|index| format!("{}:/usr/bin/program-{index} cpu g{index}", 50_000 + index));
    let mut reader = ProcessReader::new();
    let pid = std::process::id();
    let open = median(|| drop(std::hint::black_box(reader.process(pid))));
    println!("take hold of a process: {open:.1} us");
    let status = median(|| {
        let _ = std::hint::black_box(reader.process(pid).and_then(|mut process| process.status()));
    });
    println!("and read its status: {status:.1} us");
    for (name, rules) in [("user", by_user), ("program", by_program), ("user:program", by_both)] {
        let time = median(|| {
            let decision = reader.process(pid).and_then(|mut process| rules.decide(&mut process));
            assert!(decision == Ok(Decision::To { rule: 99 }), "{decision:?}");
        });
        // with all facts read
        let judged = reader.process(pid).map_or(f64::NAN, |mut process| {
            let _ = rules.decide(&mut process);
            median(|| {
                let _ = std::hint::black_box(rules.decide(&mut process));
            })
        });
        println!("100 rules by {name}: {time:.1} us, of which {judged:.2} us are for comparing");
    }
}

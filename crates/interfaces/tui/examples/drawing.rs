//! What a beat and a key cost with many groups: `cargo run --release -p ringfence-tui --example drawing [GROUPS]`.
//! Prints medians of CPU time; on the kernel in memory, so that sampling itself is not measured.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the developer who runs it")]

use std::time::Duration;

use crossterm::event::KeyCode;
use exporters::view;
use fake::Fake;
use kernel::{Host, Kernel};
use monitor::{Beat, Groups, Options, Sampler, Uncached};
use ratatui_core::{backend::TestBackend, terminal::Terminal};
use rustix::time::{ClockId, clock_gettime};
use tui::{Event, Figures, Look, Model, render};

const TIMES: usize = 31;
/// Groups of each group.
const BELOW: usize = 9;

fn main() {
    let groups: usize = std::env::args().nth(1).map_or(2000, |word| word.parse().unwrap());
    let fake = Fake::v2(16, 2);
    let host = Host::new(Box::new(fake.clone())).unwrap();
    let at = &host.hierarchies()[0];
    let all = "+cpu +cpuset +memory +pids +io";
    fake.write(at, "", "cgroup.subtree_control", all).unwrap();
    for group in 0..groups {
        let top = format!("g{:04}", group / (BELOW + 1));
        match group % (BELOW + 1) {
            0 => {
                fake.mkdir(at, &top).unwrap();
                fake.write(at, &top, "cgroup.subtree_control", all).unwrap();
            }
            below => fake.mkdir(at, &format!("{top}/below{below}")).unwrap(),
        }
    }
    let mut sampler =
        Sampler::new(&host, Uncached(fake.clone()), Options { groups: Groups::Ours, slow_every: 1 }, false);
    let mut window = view::window_for(sampler.tick(&host, Beat::default()).unwrap());
    // as long as it gets: what was printed once is looked for in all of it
    for _ in 0..60 {
        window.push(sampler.tick(&host, Beat::default()).unwrap());
    }
    let figures = Figures::new(&[], &[]);
    let mut model = Model::live("test", Duration::from_secs(1), topology::Machine::default());
    let sorted = Model::live("test", Duration::from_secs(1), topology::Machine::default());
    let mut sorted = sorted.sorted_by("cpu.usage");
    println!("{groups} groups");
    median("figures of a sample", || {
        figures.sight(&window, None);
    });
    let sight = figures.sight(&window, None).unwrap();
    median("the model takes a sample, as a tree", || {
        model.update(Event::Sampled(Box::new(sight.clone())));
    });
    median("the model takes a sample, sorted", || {
        sorted.update(Event::Sampled(Box::new(sight.clone())));
    });
    median("a copy of the figures, as the two before made", || {
        std::hint::black_box(sight.clone());
    });
    median("a key", || {
        model.update(Event::Key(KeyCode::Down.into()));
    });
    for (columns, lines) in [(80, 24), (120, 40), (200, 60)] {
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
        model.update(Event::Size(columns, lines));
        median(&format!("drawing at {columns}x{lines}"), || {
            let look = Look { colour: true, unicode: true };
            terminal.draw(|frame| render(&model, look, frame)).unwrap();
        });
    }
}

fn median(what: &str, mut run: impl FnMut()) {
    let mut took: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let began = spent();
            run();
            spent() - began
        })
        .collect();
    took.sort_unstable();
    println!("{:>10.3} ms  {what}", took[TIMES / 2].as_secs_f64() * 1000.0);
}

/// CPU time of this thread: other programs don't count.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

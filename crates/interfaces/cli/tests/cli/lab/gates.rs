//! Gates: what they look at, and a machine that is too busy for them.

use std::{
    fs,
    process::Output,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{Lab, text};

/// While all CPUs are busy: this process is no program of the experiment's.
fn beside_others(run: impl FnOnce() -> Output) -> Output {
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 * std::thread::available_parallelism().unwrap().get() {
            threads.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let output = run();
        stop.store(true, Ordering::Relaxed);
        output
    })
}

pub fn busy(lab: &Lab) {
    lab.experiment(1);
    let open = fs::read_to_string(lab.path("small.toml")).unwrap();
    let gates =
        open.replace("foreign-cpu = 1.0", "foreign-cpu = 0.001").replace("retries = 20", "retries = 0");
    fs::write(lab.path("small.toml"), gates).unwrap();
    let output = beside_others(|| lab.run("run small.toml --directory out"));
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(
        said.matches("note: no run of 'heavy', 'light' counts: other programs used").count(),
        1,
        "{said}"
    );
    // whatever else runs may use more than the threads above
    for part in ["0.1 % is allowed", " (most by ", "lab run --foreign-cpu "] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
}

/// faults G1, G2, F13: what a gate looks at and what a figure is of is said before the first run; the gates of any file can be
/// given on the command line; and the report of what is not complete names the directory.
pub fn said(lab: &Lab) {
    let file = "name = \"io\"\ntitle = \"I/O beside a command\"\nrepetitions = 1\nduration = \"200ms\"\nwarm-up = \"0s\"\n\
        [group.g]\n[group.disk]\n[workload.sync]\ndriver = \"writers\"\ngroup = \"disk\"\n\
        [workload.work]\ndriver = \"command\"\ncommand = [\"/bin/true\"]\ngroup = \"g\"\n\
        [[condition]]\nname = \"only\"\n[[measure]]\nname = \"wall\"\nis = \"work.seconds\"\n";
    fs::write(lab.path("io.toml"), file).unwrap();
    let said = lab.ok("check io.toml");
    for part in [
        "0.2 s and until their commands have ended each after a warm-up",
        "over 'work' from its start to its end: wall\n",
        "note: 'sync': CPU time of the kernel's threads and interrupts may be this I/O's",
        "note: 'work': measured from the start to the end, however long that takes",
    ] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    let checked = lab.json("check io.toml");
    assert_eq!(checked["spans"]["wall"], "'work' from its start to its end");
    assert_eq!(checked["notes"][0]["note"]["kind"], "kernel-threads-apart", "{checked}");

    for wrong in ["-1", "101%", "much"] {
        let output = lab.run(&format!("run io.toml --foreign-cpu={wrong}"));
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
    let results = lab.json("run io.toml --directory out --foreign-cpu 100% --steal 1");
    assert_eq!(results["experiment"]["gates"]["foreign-cpu"], 1.0);
    let notes = results["notes"].to_string();
    for kind in ["gates-given", "open-gates", "runs-to-the-end"] {
        assert!(notes.contains(kind), "no {kind} in: {notes}");
    }
    let none = "run io.toml --directory none --foreign-cpu 0 --steal 100% --retries 1";
    let output = beside_others(|| lab.run(none));
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let page = fs::read_to_string(lab.path("none/report.html")).unwrap();
    let resume = format!("ringfence lab run --resume {}", lab.path("none").display());
    assert!(page.contains(&resume), "no {resume}");
    assert!(said.contains("figures in brackets are of rejected runs alone"), "{said}");
    // there is no limit any more: what is missing is made, though its attempts were used up
    let kept = fs::read_to_string(lab.path("none/design.json")).unwrap();
    fs::write(lab.path("none/design.json"), kept.replace("\"foreign_cpu\": 0.0", "\"foreign_cpu\": 1.0"))
        .unwrap();
    lab.obey(&said, "ringfence lab run --resume none");
    let resumed = lab.json("report none");
    assert_eq!(resumed["complete"], true, "{}", resumed["runs"]);
}

//! rtla's timerlat and osnoise: how late the kernel's own timer thread wakes on each CPU, or what interrupts a thread that never
//! sleeps there. Threads of the kernel do the work; the kernel needs their tracers.

use std::{fs, time::Duration};

use experiment::{drivers::RTLA, file, results::Latency};

use super::{
    delayed::Delayed,
    distribution::{Bins, from_bins},
    process::{PATIENCE, command},
    programs,
};
use crate::{Driver, Error, Failure, Outcome, Site, Span, Timing, files};

const MICROSECOND: f64 = 1e-6;
/// Bins of its histogram, a microsecond each.
const BINS: u32 = 10_000;
const TRACERS: &str = "/sys/kernel/tracing/available_tracers";

pub(crate) struct Rtla {
    options: file::Rtla,
    run: Option<Delayed>,
}

impl Rtla {
    pub fn new(options: &file::Rtla) -> Result<Rtla, Error> {
        let wrong = |option, value: String, reason: &str| -> Error {
            Failure::Option { option, value, reason: reason.to_owned() }.into()
        };
        if !["timerlat", "osnoise"].contains(&&*options.tracer) {
            return Err(wrong("tracer", options.tracer.clone(), "it is timerlat or osnoise"));
        }
        if !(1..=99).contains(&options.priority) {
            return Err(wrong("priority", options.priority.to_string(), "it is from 1 to 99"));
        }
        if !(100..=1_000_000).contains(&options.interval_us) {
            return Err(wrong("interval-us", options.interval_us.to_string(), "it is from 100 to 1000000"));
        }
        Ok(Rtla { options: options.clone(), run: None })
    }

    fn is_timerlat(&self) -> bool {
        self.options.tracer == "timerlat"
    }
}

impl Driver for Rtla {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        let program = programs::find(&RTLA)?;
        let tracers = match fs::read_to_string(TRACERS) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = format!("there is no {TRACERS}: the kernel's tracers are not mounted");
                let hint = "mount -t tracefs tracefs /sys/kernel/tracing".to_owned();
                return Err(Failure::Unfit { text, hint }.into());
            }
            read => read.map_err(Failure::file("read", TRACERS))?,
        };
        if !tracers.split_whitespace().any(|tracer| tracer == self.options.tracer) {
            let config = format!("CONFIG_{}_TRACER", self.options.tracer.to_uppercase());
            let text = format!("this kernel has no tracer {} ({config})", self.options.tracer);
            let hint = format!("use a kernel with {config}; of Debian's, linux-image-rt-amd64 has it");
            return Err(Failure::Unfit { text, hint }.into());
        }
        Ok(vec![("rtla".to_owned(), programs::version(&program))])
    }

    fn prepare(&mut self, _: &Site<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self, site: &Site<'_>, timing: Timing) -> Result<(), Error> {
        // on its end it ends the kernel's threads, which SIGKILL would leave
        let mut tool = command(site.launch, site.group, &programs::find(&RTLA)?, None, "INT");
        let seconds = timing.duration.as_secs_f64().ceil().max(1.0) as u64;
        let kind = if self.is_timerlat() { "hist" } else { "top" };
        tool.args([&*self.options.tracer, kind, "--duration", &format!("{seconds}s")]);
        tool.args(["--priority", &format!("f:{}", self.options.priority)]);
        if !self.options.cpus.is_empty() {
            tool.args(["--cpus", &self.options.cpus]);
        }
        if self.is_timerlat() {
            tool.args(["--period", &self.options.interval_us.to_string(), "--entries", &BINS.to_string()]);
        } else {
            tool.arg("--quiet");
        }
        let patience = Duration::from_secs(seconds) + PATIENCE;
        self.run = Some(Delayed::ready(tool, "rtla", site.directory, patience)?);
        Ok(())
    }

    fn begin(&mut self) {
        if let Some(run) = &self.run {
            run.begin();
        }
    }

    fn done(&mut self) -> Option<f64> {
        None
    }

    fn stop(&mut self, _: Span) -> Result<Outcome, Error> {
        let run = self.run.take().ok_or_else(|| Failure::unreadable("rtla", "it was not started"))?;
        let process = run.finish()?.process;
        let path = process.output();
        let text = files::tool_text(path).map_err(Failure::file("read", path))?;
        let outcome = if self.is_timerlat() { timerlat(&text) } else { osnoise(&text) };
        let outcome = outcome.ok_or_else(|| Failure::unreadable("rtla", no_table(&text)))?;
        Ok(Outcome { files: vec![path.to_owned()], ..outcome })
    }

    fn clean_up(&mut self) {
        self.run = None;
    }
}

/// What is there in place of a table.
fn no_table(text: &str) -> String {
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.map_or("it is empty".to_owned(), |line| {
        format!("there is no table in it; its last line: {}", line.trim())
    })
}

/// Of all CPUs: the columns `Thr-…` of its histogram, and what they add up to below.
fn timerlat(text: &str) -> Option<Outcome> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Index"));
    let columns: Vec<&str> = lines.next()?.split_whitespace().skip(1).collect();
    let of = |kind: &str| -> Vec<usize> {
        (0..columns.len()).filter(|index| columns[*index].starts_with(kind)).collect()
    };
    let (threads, interrupts) = (of("Thr-"), of("IRQ-"));
    let mut bins: Vec<(f64, u64)> = Vec::new();
    let mut sums: Vec<(&str, Vec<Option<f64>>)> = Vec::new();
    for line in lines.take_while(|line| !line.starts_with("ALL")) {
        let mut fields = line.split_whitespace();
        let Some(name) = fields.next() else { continue };
        let values: Vec<Option<f64>> = fields.map(|field| field.parse().ok()).collect();
        match name.parse::<u32>() {
            Ok(place) => {
                let counts = threads.iter().filter_map(|index| *values.get(*index)?);
                // a bin has what is at least as long as its name
                bins.push((f64::from(place + 1) * MICROSECOND, counts.sum::<f64>() as u64));
            }
            Err(_) => sums.push((name, values)),
        }
    }
    let column = |name: &str, of: &[usize]| -> Vec<f64> {
        let values = sums.iter().find(|(known, _)| known.trim_end_matches(':') == name);
        values.map_or(Vec::new(), |(_, values)| of.iter().filter_map(|index| *values.get(*index)?).collect())
    };
    let (counts, averages) = (column("count", &threads), column("avg", &threads));
    let count: f64 = counts.iter().sum();
    let mean =
        counts.iter().zip(&averages).map(|(count, average)| count * average).sum::<f64>() / count.max(1.0);
    let most = |of: &[usize]| column("max", of).into_iter().fold(0.0, f64::max);
    let least = column("min", &threads).into_iter().fold(f64::INFINITY, f64::min);
    let (longest, interrupt) = (most(&threads), most(&interrupts));
    let beyond = column("over", &threads).iter().sum::<f64>() as u64;
    let latency: Option<Latency> = from_bins(Bins {
        bins: &bins,
        beyond,
        mean: mean * MICROSECOND,
        min: least * MICROSECOND,
        max: longest * MICROSECOND,
        missed: 0,
    });
    // the rest is the way from the interrupt to the thread
    let cause = if interrupt * 2.0 > longest {
        "the timer's interrupt came late"
    } else {
        "the thread got the CPU late"
    };
    let note = format!(
        "the longest wake-up took {longest:.0} us, the timer's interrupt at most {interrupt:.0} us: {cause}"
    );
    Some(Outcome {
        latencies: [("latency".to_owned(), latency?)].into_iter().collect(),
        notes: vec![note],
        ..Outcome::default()
    })
}

/// Of all CPUs: `CPU Period Runtime Noise %CPU-Aval Max-Noise Max-Single HW NMI IRQ Softirq Thread`.
fn osnoise(text: &str) -> Option<Outcome> {
    let row = |line: &str| -> Option<Vec<f64>> {
        let mut fields = line.split_whitespace();
        fields.next()?.parse::<u32>().ok()?;
        let values = fields.map(|field| field.trim_start_matches('#').parse().ok());
        values.collect::<Option<Vec<f64>>>().filter(|values| values.len() == 11)
    };
    let rows: Vec<Vec<f64>> = text.lines().filter_map(row).collect();
    let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>();
    let (runtime, noise) = (sum(1), sum(2));
    let longest = rows.iter().map(|row| row[5]).fold(0.0, f64::max);
    let causes: Vec<(f64, &str)> = [
        (sum(6), "hardware or a hypervisor"),
        (sum(7), "interrupts that can't be masked"),
        (sum(8), "interrupts"),
        (sum(9), "softirqs"),
        (sum(10), "threads"),
    ]
    .into();
    let all: f64 = causes.iter().map(|(count, _)| count).sum();
    let said: Vec<String> = causes
        .iter()
        .filter(|(count, _)| *count > 0.0)
        .map(|(count, name)| format!("{count:.0} by {name}"))
        .collect();
    if rows.is_empty() || runtime <= 0.0 {
        return None;
    }
    let seconds = runtime * MICROSECOND;
    let note = format!("{all:.0} interruptions ({}), the longest {longest:.0} us", said.join(", "));
    let readings =
        [("noise", noise / runtime), ("interruptions", all / seconds), ("longest", longest * MICROSECOND)];
    Some(Outcome {
        readings: readings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        notes: vec![note],
        ..Outcome::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_latencies_are_read_of_the_histogram() {
        // of rtla 6.12, shortened
        let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:02\n\
            Index   IRQ-003   Thr-003\n0 150 0\n7 0 1500\n25 1 499\n30 0 1\n\
            over: 0 0\ncount: 151 2000\nmin: 0 7\navg: 1 11\nmax: 25 30\nALL: IRQ Thr\ncount: 151 2000\n";
        let outcome = timerlat(text).unwrap();
        let latency = &outcome.latencies["latency"];
        assert_eq!((latency.count, latency.missed), (2000, 0));
        assert!((latency.p50 - 8e-6).abs() < 1e-12 && (latency.max - 30e-6).abs() < 1e-12, "{latency:?}");
        assert!(outcome.notes[0].contains("30 us") && outcome.notes[0].contains("interrupt came late"));
        assert!(timerlat("rtla: no tracer\n").is_none());
    }

    #[test]
    fn what_interrupts_is_added_over_the_cpus() {
        let row = "  0 #2  2000000  1000  99.95  90  40  1  0  1500  400  6\n";
        let text = format!(
            "CPU Period Runtime Noise % CPU Aval Max Noise Max Single HW NMI IRQ Softirq Thread\n{row}{row}"
        );
        let outcome = osnoise(&text).unwrap();
        assert_eq!(outcome.readings["noise"], 0.0005);
        assert_eq!(outcome.readings["interruptions"], 953.5);
        assert!(
            outcome.notes[0].contains("3000 by interrupts") && outcome.notes[0].contains("the longest 40 us")
        );
        assert!(osnoise("").is_none());
    }
}

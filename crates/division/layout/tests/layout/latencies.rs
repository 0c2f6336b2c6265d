//! A group's latency: read, exported and recorded as the same.

use layout::{Desired, Latency, LatencySource, LatencyUnit, to_toml};
use units::Micros;

use super::{desired, exports::assert_toml_is_the_same};

fn read(latency: &str) -> Desired {
    let text = format!(
        "[groups.a]\ncpus = {{ min = 1, max = 2, weight = 100 }}\nlatency = {{ p99 = '5ms', {latency} }}\n"
    );
    desired("layout.toml", &text)
}

#[test]
fn a_latency_has_one_of_three_sources_and_is_exported_and_recorded_as_the_same() {
    let log =
        LatencySource::Log { log: "/var/log/a b.log".to_owned(), pattern: r"took ([0-9.]+\s?ms)".to_owned() };
    let command = LatencySource::Command { command: vec!["/bin/p99".to_owned(), "it's".to_owned()] };
    let metric = layout::Selector::new("http{path=\"/\"}").unwrap();
    let prometheus = LatencySource::Prometheus { prometheus: "http://localhost:9100/m".to_owned(), metric };
    let every = Micros(500_000);
    for (text, source, every, unit) in [
        (r#"command = ["/bin/p99", "it's"]"#, command.clone(), Micros(1_000_000), LatencyUnit::Seconds),
        (
            r#"log = "/var/log/a b.log", pattern = 'took ([0-9.]+\s?ms)', every = "500ms""#,
            log,
            every,
            LatencyUnit::Seconds,
        ),
        (
            r#"prometheus = "http://localhost:9100/m", metric = 'http{path="/"}', unit = "us""#,
            prometheus,
            Micros(1_000_000),
            LatencyUnit::Microseconds,
        ),
    ] {
        let desired = read(text);
        let latency = desired.groups[0].demands.latency.as_ref().unwrap().value.clone();
        assert_eq!(latency, Latency { source, p99: Micros(5_000), every, unit });
        assert_toml_is_the_same(&desired);
        assert!(to_toml(&desired).contains("latency = {"));
        let recorded = serde_json::to_string(&latency).unwrap();
        assert_eq!(serde_json::from_str::<Latency>(&recorded).unwrap(), latency, "{recorded}");
    }
    let one = read("command = '/bin/p99'").groups[0].demands.latency.clone().unwrap().value.source;
    assert_eq!(
        one,
        LatencySource::Command { command: vec!["/bin/p99".to_owned()] },
        "one word is a command, too"
    );
    assert_eq!(command.to_string(), "command /bin/p99", "arguments may be a password");
}

#[test]
fn while_a_schedule_gives_a_group_a_number_of_cpus_its_latency_is_of_no_concern() {
    let text = "[groups.a]\ncpus = { min = 1, max = 2, weight = 100 }\nlatency = { p99 = '5ms', command = '/bin/p99' }\n\
        [[schedule]]\nname = 'night'\nat = '22:00'\ngroups.a.cpus = 1\n";
    let desired = desired("layout.toml", text);
    assert!(desired.groups[0].demands.latency.is_some());
    assert_eq!(desired.with(&["night"]).groups[0].demands.latency, None);
}

//! Our own JSON: reads back to what was written, keeps its form, and is refused clearly when it is another.

use topology::Machine;

use super::{LISTINGS, machine, recorded_text, refusal};

#[test]
fn every_listing_comes_back_equal_through_json() {
    for name in LISTINGS {
        let machine = machine(name);
        let again = Machine::from_listing("x.json", &machine.to_json()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(again, machine, "{name}");
    }
}

#[test]
fn the_form_of_version_1_stays_as_it_is() {
    let name = "synthetic-2x8.json";
    let text = machine("synthetic-2x8.hwloc.xml").to_json() + "\n";
    if std::env::var_os("RINGFENCE_BLESS").is_some() {
        std::fs::write(super::path(name), &text).unwrap();
    }
    assert_eq!(text, recorded_text(name));
    assert_eq!(machine(name), machine("synthetic-2x8.hwloc.xml"));
}

#[test]
fn json_of_another_form_is_refused_by_what_is_wrong() {
    let good = recorded_text("synthetic-2x8.json");
    for (from, to, refused) in [
        (
            "\"version\": 1",
            "\"version\": 2",
            "given: machine JSON of version 2, but this program reads version 1",
        ),
        (
            "ringfence-machine",
            "other",
            "given:1: expected JSON with \"format\": \"ringfence-machine\", found 'other'",
        ),
        (
            "\"format\": \"ringfence-machine\",",
            "",
            "given:1: expected JSON with \"format\": \"ringfence-machine\", found none",
        ),
        ("\"version\": 1,", "", "given:1: expected \"version\": 1, found none"),
        ("\"online\": true", "\"on_line\": true", "given:14: expected machine JSON (unknown field `on_line`"),
        (
            "\"cpus\": \"0-15\"",
            "\"cpus\": \"0-15x\"",
            "expected machine JSON (expected ',' or '-' between numbers at position 5 of '0-15x')",
        ),
        (
            "\"cpus\": \"0-15\"",
            "\"cpus\": \"1-15\"",
            "given: CPU 0 says it is in node 0, which does not list it",
        ),
        ("\"cpus\": \"0-15\"", "\"cpus\": \"0-16\"", "given: CPU 16 is in both node 1 and node 0"),
        (
            "\"siblings\": \"0-1\"",
            "\"siblings\": \"0-2\"",
            "given: CPUs 0 and 1 do not agree on their siblings",
        ),
        ("\"l3\": 0", "\"l3\": 1", "given: CPU 0 is in both L3 group 1 and L3 group 0"),
        ("\"id\": 31", "\"id\": 8192", "given: CPU 8192 is beyond 8191, the largest that Linux numbers"),
        ("\"id\": 31", "\"id\": 30", "given: CPU 30 is listed twice or out of order"),
        (
            "          10,\n          21\n",
            "          10\n",
            "given: node 0 has 1 distances, but there are 2 nodes",
        ),
    ] {
        let wrong = good.replacen(from, to, 1);
        assert!(wrong != good, "{from}");
        assert!(refusal(&wrong).contains(refused), "{}\nis not\n{refused}", refusal(&wrong));
    }
    assert!(refusal("{").contains("given:1: expected machine JSON"));
    assert!(refusal("{}").contains("\"format\""));
}

#[test]
fn a_newer_version_says_what_to_do() {
    let newer = r#"{"format": "ringfence-machine", "version": 7, "what": "ever"}"#;
    let error = Machine::from_listing("given", newer).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("a newer ringfence wrote it; read it with that"));
}

#[test]
fn a_list_longer_than_linux_numbers_is_refused_while_it_is_read() {
    let cpu = r#"{"id":0,"online":true,"siblings":"65535"},"#;
    let text = format!(
        r#"{{"format":"ringfence-machine","version":1,"machine":{{"sources":[],"cpus":[{}]}}}}"#,
        cpu.repeat(100_000).trim_end_matches(',')
    );
    assert!(refusal(&text).contains("a list of at most 8192"), "{}", refusal(&text));
}

#[test]
fn names_that_would_break_a_line_are_refused() {
    let good = machine("e5504.lscpu.txt").to_json();
    for letter in ["u001b", "u202e"] {
        let wrong = refusal(&good.replace("Intel(R)", &format!("Intel\\{letter}(R)")));
        assert!(wrong.ends_with("holds characters that steer a terminal"), "{wrong}");
    }
}

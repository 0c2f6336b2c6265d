//! Hints about units of systemd: its own command, or a change of the layout that has the unit as a group.

use apply::BoundUnit;

use super::*;

const SERVICE: &str = "/system.slice/pg.service";

/// A service in a slice, as `facts` has a group in another one.
fn service() -> Facts {
    let mut facts = facts();
    facts.group = SERVICE.to_owned();
    facts.levels[0].group = SERVICE.to_owned();
    facts.levels[1].group = "/system.slice".to_owned();
    facts
}

fn hints(facts: &Facts) -> Vec<String> {
    why(facts).causes.into_iter().filter_map(|cause| cause.hint).collect()
}

/// Fault F3: the hint was `ringfence set /system.slice/…`, which Ringfence refuses.
#[test]
fn of_a_unit_that_is_in_no_layout_systemd_is_asked() {
    let mut facts = service();
    facts.cpu.waited = Some(Duration::from_secs(8));
    set_quota(&mut facts.levels[0], Duration::from_secs(8));
    assert_eq!(hints(&facts), ["systemctl set-property pg.service CPUQuota=180%"]);
    facts.levels[0].quota = None;
    set_quota(&mut facts.levels[1], Duration::from_secs(8));
    (facts.levels[0].throttled, facts.levels[0].throttled_periods) = (Duration::ZERO, 0);
    assert_eq!(hints(&facts), ["systemctl set-property system.slice CPUQuota=180%"]);
    let mut facts = service();
    facts.cpu.used = Duration::from_secs(20);
    facts.cpu.waited = Some(Duration::from_secs(10));
    assert_eq!(hints(&facts), ["systemctl set-property pg.service AllowedCPUs=0-2"]);
    facts.levels[1].frozen = (true, true);
    assert_eq!(hints(&facts)[0], "systemctl thaw system.slice");
    let mut facts = service();
    facts.levels[0].failed_forks = 2;
    facts.levels[0].pids_max = Some(Limit::At(3));
    assert_eq!(hints(&facts), ["systemctl set-property pg.service TasksMax=8"]);
    // systemd has no property for it
    facts.levels[0].failed_forks = 0;
    facts.levels[0].realtime = Some((Limit::At(Duration::ZERO), millis(1000)));
    assert_eq!(why(&facts).notes[0].hint, None);
}

/// systemd takes our drop-in file after its own: what `set-property` writes is not in force.
#[test]
fn of_a_unit_that_is_a_group_of_the_layout_the_layout_is_changed() {
    let mut facts = service();
    facts.bound.layout = Some("/etc/ringfence/a b.toml".into());
    let unit = BoundUnit {
        group: "db/oltp".to_owned(),
        unit: "pg.service".to_owned(),
        level: SERVICE.to_owned(),
        ..BoundUnit::default()
    };
    facts.bound.units = vec![unit];
    facts.cpu.waited = Some(Duration::from_secs(8));
    set_quota(&mut facts.levels[0], Duration::from_secs(8));
    let then = "of group db/oltp in /etc/ringfence/a b.toml, then: ringfence apply '/etc/ringfence/a b.toml'";
    assert_eq!(hints(&facts), [format!("set cpu.max = \"180%\" {then}")]);
    // where the slice above is in no layout, it is systemd's
    let slice = |facts: &mut Facts| {
        let quota = facts.levels[0].clone();
        set_quota(&mut facts.levels[1], Duration::from_secs(8));
        facts.levels[0] = Level { quota: None, throttled: Duration::ZERO, throttled_periods: 0, ..quota };
    };
    slice(&mut facts);
    assert_eq!(hints(&facts), ["systemctl set-property system.slice CPUQuota=180%"]);
    let mut more = service();
    more.bound = facts.bound.clone();
    more.cpu.used = Duration::from_secs(20);
    more.cpu.waited = Some(Duration::from_secs(10));
    assert_eq!(hints(&more), [format!("set cpus = \"0-2\" {then}")]);
    more.bound.layout = None;
    assert_eq!(hints(&more), ["set cpus = \"0-2\" of group db/oltp in its layout, and apply that"]);
}

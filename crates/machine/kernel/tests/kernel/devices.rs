//! Device rules on the running kernel: v1's device files or v2's programs, held against the same model.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, OpenOptions},
    path::Path,
    process::Command,
};

use fake::suite;
use kernel::{Access, Error, GroupName, Host, Real};
use libtest_mimic::{Failed, Trial};
use settings::{
    Controller, DeviceClass, DeviceRule, Version,
    devices::{DeviceAccess, Forbidden, Verb},
};

/// The first word of a command line that starts a probe.
pub const PROBE: &str = "probe-devices";

const TOP: &str = "rf-test-devices";
const GROUPS: [&str; 4] = ["", "/a", "/a/b", "/c"];
const NODES: [(&str, u32); 3] = [("/dev/null", 3), ("/dev/zero", 5), ("/dev/full", 7)];
const READ: u32 = 2;
const WRITE: u32 = 4;
const MKNOD: u32 = 1;
/// `a`
const EVERY: DeviceRule =
    DeviceRule { class: DeviceClass::All, major: None, minor: None, read: true, write: true, mknod: true };

/// Tests for the hierarchy that holds devices here.
pub fn trials() -> Vec<Trial> {
    let host = Host::new(Box::new(Real::new()));
    let at = host.ok().and_then(|host| Some(host.hierarchy_of(Controller::Devices)?.version));
    let lacks = (at != Some(Version::V2)).then(|| "device control on v2".to_owned());
    vec![
        suite::fallible("device_rules_in_a_tree_follow_the_model_in_any_order", None, rules_follow_the_model),
        suite::fallible(
            "what_the_device_rules_say_is_what_open_and_mknod_get",
            None,
            tasks_get_what_the_rules_say,
        ),
        suite::fallible("a_refused_device_rule_says_why", None, refusals_say_why),
        suite::fallible("device_rules_whose_program_is_not_theirs_are_told_and_mended", lacks, drift_is_told),
    ]
}

/// The body of a probing process: goes into a group and tries every access; a line for each that worked.
pub fn probe(mut words: impl Iterator<Item = OsString>) {
    let (procs, scratch) = (words.next().unwrap(), words.next().unwrap());
    fs::write(procs, "0").unwrap();
    for (node, minor) in NODES {
        for (mode, access) in [("r", READ), ("w", WRITE), ("rw", READ | WRITE)] {
            let opened = OpenOptions::new().read(access & READ != 0).write(access & WRITE != 0).open(node);
            if opened.is_ok() {
                println!("c {minor} {mode}");
            }
        }
    }
    for (class, kind, number) in [
        ("c", rustix::fs::FileType::CharacterDevice, (1, 3)),
        ("c", rustix::fs::FileType::CharacterDevice, (1, 5)),
        ("b", rustix::fs::FileType::BlockDevice, (7, 0)),
    ] {
        let path = Path::new(&scratch).join(format!("{class}{}", number.1));
        let device = rustix::fs::makedev(number.0, number.1);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        if rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, device).is_ok() {
            println!("{class} {} m", number.1);
            fs::remove_file(path).unwrap();
        }
    }
}

/// What [`probe`] prints if these rules hold.
fn expected(access: &DeviceAccess) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, minor) in NODES {
        for (mode, bits) in [("r", READ), ("w", WRITE), ("rw", READ | WRITE)] {
            if access.permits(DeviceClass::Character, 1, minor, bits) {
                lines.push(format!("c {minor} {mode}"));
            }
        }
    }
    for (class, name, number) in [
        (DeviceClass::Character, "c", (1, 3)),
        (DeviceClass::Character, "c", (1, 5)),
        (DeviceClass::Block, "b", (7, 0)),
    ] {
        if access.permits(class, number.0, number.1, MKNOD) {
            lines.push(format!("{name} {} m", number.1));
        }
    }
    lines
}

/// The groups of a test, removed when it ends.
struct Tree {
    host: Host,
    model: BTreeMap<&'static str, DeviceAccess>,
}

impl Tree {
    fn new() -> Result<Tree, Failed> {
        let host = Host::new(Box::new(Real::new()))?;
        let tree = Tree { host, model: GROUPS.iter().map(|group| (*group, DeviceAccess::all())).collect() };
        for group in GROUPS {
            tree.create(group)?;
        }
        Ok(tree)
    }

    fn name(group: &str) -> GroupName {
        GroupName::new(&format!("{TOP}{group}")).unwrap()
    }

    fn create(&self, group: &str) -> Result<(), Error> {
        let at = self.host.hierarchy_of(Controller::Devices).unwrap();
        let controllers = [if at.version == Version::V1 { Controller::Devices } else { Controller::Core }];
        self.host.create(&Self::name(group), Some(&controllers), &Access::default()).map(|_| ())
    }

    fn parent(&self, group: &str) -> DeviceAccess {
        match group.rsplit_once('/') {
            Some((parent, _)) => self.model[parent].clone(),
            None => DeviceAccess::all(),
        }
    }

    /// One rule, on the kernel and in the model: both must agree on whether it may be.
    fn change(
        &mut self,
        group: &'static str,
        verb: Verb,
        rule: &DeviceRule,
    ) -> Result<Option<&'static str>, Failed> {
        let below: Vec<&'static str> =
            self.model.keys().copied().filter(|other| is_below(other, group)).collect();
        let mut new = self.model[group].clone();
        let modelled = new.change(verb, rule, Some(&self.parent(group)), !below.is_empty());
        let name = Self::name(group);
        let seat = self.host.seat(&name, Controller::Devices)?;
        let file = if verb == Verb::Allow { "devices.allow" } else { "devices.deny" };
        let done = self.host.write_devices(&seat, &name, file, &rule.to_string());
        match (&modelled, &done) {
            (Ok(()), Ok(())) => {}
            (Err(Forbidden::Parent), Err(Error::Refused(refusal)))
                if refusal.errno.raw_os_error() == libc::EPERM => {}
            (Err(Forbidden::HasChildren), Err(Error::Refused(refusal)))
                if refusal.errno.raw_os_error() == libc::EINVAL => {}
            _ => {
                return Err(format!("{file} {rule} on '{group}': kernel {done:?}, model {modelled:?}").into());
            }
        }
        if modelled.is_ok() {
            self.model.insert(group, new.clone());
            if verb == Verb::Deny && rule.class != DeviceClass::All {
                for other in below {
                    let parent = self.parent(other);
                    self.model.get_mut(other).unwrap().narrow(rule, &new, &parent);
                }
            }
        }
        Ok(match modelled {
            Ok(()) => None,
            Err(Forbidden::Parent) => Some("EPERM"),
            Err(Forbidden::HasChildren) => Some("EINVAL"),
        })
    }

    fn check(&self, after: &str) -> Result<(), Failed> {
        for (group, access) in &self.model {
            let name = Self::name(group);
            let seat = self.host.seat(&name, Controller::Devices)?;
            let list = self.host.read_devices(&seat, &name)?;
            if list != access.list_text() {
                return Err(
                    format!("after {after}: '{group}' lists\n{list}model\n{}", access.list_text()).into()
                );
            }
        }
        Ok(())
    }

    /// Makes a group and those below it anew: each starts as its parent. A rule for all devices comes before there
    /// are groups below.
    fn renew(&mut self, group: &'static str, every: Option<Verb>) -> Result<(), Failed> {
        self.host.delete(&Self::name(group), true)?;
        self.model.retain(|other, _| *other != group && !is_below(other, group));
        for other in GROUPS.into_iter().filter(|other| *other == group || is_below(other, group)) {
            self.create(other)?;
            self.model.insert(other, self.parent(other));
            if let (true, Some(verb)) = (other == group, every) {
                self.change(group, verb, &EVERY)?;
            }
        }
        Ok(())
    }

    fn probe(&self, group: &str) -> Result<Vec<String>, Failed> {
        let seat = self.host.seat(&Self::name(group), Controller::Devices)?;
        let scratch = std::env::temp_dir().join(format!("{TOP}-{}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        let program = std::env::current_exe()?;
        let output = Command::new(program)
            .arg(PROBE)
            .args([seat.directory().join("cgroup.procs"), scratch.clone()])
            .stdin(std::process::Stdio::piped())
            .output()?;
        fs::remove_dir(&scratch)?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = self.host.delete(&Self::name(""), true);
    }
}

fn is_below(group: &str, above: &str) -> bool {
    group.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// Random numbers that are the same in every run (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn rule(&mut self) -> DeviceRule {
        if self.below(20) == 0 {
            return EVERY;
        }
        let access = self.below(7) as u32 + 1;
        DeviceRule {
            class: self.pick(&[DeviceClass::Character, DeviceClass::Character, DeviceClass::Block]),
            major: self.pick(&[Some(1), Some(1), Some(7), None]),
            minor: self.pick(&[Some(3), Some(3), Some(5), Some(0), None]),
            read: access & READ != 0,
            write: access & WRITE != 0,
            mknod: access & MKNOD != 0,
        }
    }
}

fn rules_follow_the_model() -> Result<(), Failed> {
    let mut tree = Tree::new()?;
    let mut dice = Dice(0x0dd5_eed5);
    tree.change("/a/b", Verb::Deny, &EVERY)?;
    let mut seen = BTreeMap::new();
    for step in 0..500 {
        if dice.below(25) == 0 {
            let (group, every) = (dice.pick(&GROUPS), dice.pick(&[None, Some(Verb::Deny)]));
            tree.renew(group, every)?;
            tree.check(&format!("'{group}' anew"))?;
            continue;
        }
        let (group, verb, rule) = (dice.pick(&GROUPS), dice.pick(&[Verb::Allow, Verb::Deny]), dice.rule());
        *seen.entry(tree.change(group, verb, &rule)?).or_insert(0) += 1;
        tree.check(&format!("step {step}, {verb:?} {rule} on '{group}'"))?;
    }
    // all three ways were taken, or the dice show nothing
    if seen.len() == 3 { Ok(()) } else { Err(format!("only {seen:?}").into()) }
}

/// Changes of two groups, one below the other, and a third; the tasks of all are asked.
const SEQUENCES: [&[(&str, Verb, &str)]; 10] = [
    &[],
    &[("/a/b", Verb::Deny, "a")],
    &[("/a/b", Verb::Deny, "a"), ("/a/b", Verb::Allow, "c 1:3 r"), ("/a/b", Verb::Allow, "b 7:* m")],
    // to read and to write, but by two exceptions: not both in one open
    &[("/a/b", Verb::Deny, "a"), ("/a/b", Verb::Allow, "c 1:3 r"), ("/a/b", Verb::Allow, "c 1:* w")],
    // an exception is taken back only by its own numbers
    &[("/a/b", Verb::Deny, "a"), ("/a/b", Verb::Allow, "c 1:* rwm"), ("/a/b", Verb::Deny, "c 1:3 rwm")],
    &[("/a/b", Verb::Deny, "a"), ("/a/b", Verb::Allow, "c *:5 rm"), ("/a/b", Verb::Allow, "a")],
    &[("/a/b", Verb::Deny, "c 1:3 w"), ("/a/b", Verb::Deny, "c *:* m"), ("/c", Verb::Deny, "b *:* rwm")],
    // a deny reaches the groups below, its taking back does not
    &[("/a", Verb::Deny, "c 1:5 w"), ("/a", Verb::Allow, "c 1:5 w"), ("/c", Verb::Deny, "c 1:7 r")],
    &[("/a/b", Verb::Deny, "a"), ("/a/b", Verb::Allow, "c 1:3 rw"), ("/a", Verb::Deny, "c 1:* w")],
    &[("", Verb::Deny, "c 1:* r"), ("/a", Verb::Deny, "c 1:3 w"), ("", Verb::Allow, "c 1:* r")],
];

fn tasks_get_what_the_rules_say() -> Result<(), Failed> {
    let mut tree = Tree::new()?;
    for sequence in SEQUENCES {
        tree.renew("", None)?;
        for (group, verb, text) in sequence {
            let rule = if *text == "a" { EVERY } else { parse(text) };
            tree.change(group, *verb, &rule)?;
        }
        tree.check(&format!("{sequence:?}"))?;
        // controllers are enabled in none of the groups, so v2, too, lets all of them hold tasks
        for group in GROUPS {
            let (got, said) = (tree.probe(group)?, expected(&tree.model[group]));
            if got != said {
                let access = &tree.model[group];
                return Err(
                    format!("{sequence:?}, '{group}' {access:?}: got {got:?}, rules say {said:?}").into()
                );
            }
        }
    }
    Ok(())
}

fn parse(text: &str) -> DeviceRule {
    let words: Vec<&str> = text.split([' ', ':']).collect();
    let [class, major, minor, access] = words[..] else { panic!("{text}") };
    DeviceRule {
        class: if class == "b" { DeviceClass::Block } else { DeviceClass::Character },
        major: major.parse().ok(),
        minor: minor.parse().ok(),
        read: access.contains('r'),
        write: access.contains('w'),
        mknod: access.contains('m'),
    }
}

fn refusals_say_why() -> Result<(), Failed> {
    let tree = Tree::new()?;
    let write = |group: &str, file, rule| {
        let name = Tree::name(group);
        let seat = tree.host.seat(&name, Controller::Devices)?;
        tree.host.write_devices(&seat, &name, file, rule)
    };
    write("/a", "devices.deny", "c 1:3 w")?;
    for (group, file, rule, word) in [
        ("/a", "devices.deny", "a", "groups below"),
        ("/a/b", "devices.allow", "c 1:* rw", "parent"),
        ("/c", "devices.allow", "d 1:3 r", "a rule is"),
    ] {
        let Err(error) = write(group, file, rule) else {
            return Err(format!("{file} {rule} on '{group}' was taken").into());
        };
        let said = format!("{error}\n{}", error.hint().unwrap_or_default());
        if !said.contains(word) {
            return Err(format!("{file} {rule} on '{group}': no '{word}' in: {said}").into());
        }
    }
    Ok(())
}

fn drift_is_told() -> Result<(), Failed> {
    let mut tree = Tree::new()?;
    let rule = parse("c 1:3 w");
    tree.change("/c", Verb::Deny, &rule)?;
    let name = Tree::name("/c");
    let seat = tree.host.seat(&name, Controller::Devices)?;
    // the same as if the program were another one
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(seat.directory(), "trusted.ringfence.devices", b"deny\nc 1:3 rwm\n", flags)?;
    match tree.host.read_devices(&seat, &name) {
        Err(Error::Refused(refusal))
            if refusal.cause.as_ref().is_some_and(|cause| cause.contains("program")) => {}
        other => return Err(format!("not told: {other:?}").into()),
    }
    tree.host.write_devices(&seat, &name, "devices.allow", "c 1:5 rwm")?;
    assert_eq!(tree.host.read_devices(&seat, &name)?, "c 1:3 rwm\nc 1:5 rwm\n");
    assert_eq!(tree.probe("/c")?, ["c 3 r", "c 3 w", "c 3 rw", "c 5 r", "c 5 w", "c 5 rw", "c 3 m", "c 5 m"]);
    Ok(())
}

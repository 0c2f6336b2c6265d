//! Device access rules, as `devices.allow` takes and `devices.list` prints them.

use std::fmt;

/// Which devices may be used how; `None` stands for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct DeviceRule {
    /// Block, character, or both.
    pub class: DeviceClass,
    /// Major number.
    pub major: Option<u32>,
    /// Minor number.
    pub minor: Option<u32>,
    /// May it be opened for reading?
    pub read: bool,
    /// For writing?
    pub write: bool,
    /// May its node be made?
    pub mknod: bool,
}

/// The class of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// `a`: both, with all numbers and all access.
    All,
    /// `b`.
    Block,
    /// `c`.
    Character,
}

impl DeviceRule {
    /// Does this rule allow all that `other` allows?
    pub fn covers(&self, other: &DeviceRule) -> bool {
        let number = |own: Option<u32>, other: Option<u32>| own.is_none() || own == other;
        let access = |own: bool, other: bool| own || !other;
        self.class == DeviceClass::All
            || (self.class == other.class
                && number(self.major, other.major)
                && number(self.minor, other.minor)
                && access(self.read, other.read)
                && access(self.write, other.write)
                && access(self.mknod, other.mknod))
    }
}

impl fmt::Display for DeviceRule {
    /// As `devices.list` prints it: `c 1:3 rwm`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            DeviceClass::All => 'a',
            DeviceClass::Block => 'b',
            DeviceClass::Character => 'c',
        };
        let part = |number: Option<u32>| number.map_or_else(|| "*".to_owned(), |n| n.to_string());
        let access = [(self.read, "r"), (self.write, "w"), (self.mknod, "m")];
        let access: String = access.iter().filter(|(may, _)| *may).map(|(_, letter)| *letter).collect();
        write!(f, "{class} {}:{} {access}", part(self.major), part(self.minor))
    }
}

/// `c 1:3 rwm`, `b 8:* r`, `a`. The error is what is wrong, and at which byte.
pub(crate) fn rule(entry: &str) -> Result<DeviceRule, (String, usize)> {
    let end = entry.len();
    let mut words = entry.split_whitespace();
    let class = match words.next() {
        // the kernel ignores what follows `a`
        Some("a") => {
            let (class, major, minor) = (DeviceClass::All, None, None);
            return Ok(DeviceRule { class, major, minor, read: true, write: true, mknod: true });
        }
        Some("b") => DeviceClass::Block,
        Some("c") => DeviceClass::Character,
        _ => return Err(("expected a, b or c for all, block or character devices".to_owned(), 0)),
    };
    let numbers = words.next().ok_or(("expected MAJOR:MINOR".to_owned(), end))?;
    let number = |text: &str| match text {
        "*" => Some(None),
        text => text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit())).map(Some),
    };
    let both = numbers.split_once(':').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    let (major, minor) = both.ok_or(("expected MAJOR:MINOR, each a number or *".to_owned(), 2))?;
    let access = words.next().ok_or(("expected some of r, w and m".to_owned(), end))?;
    if let Some(index) = access.find(|c: char| !"rwm".contains(c)) {
        let at = end - access.len() + index;
        return Err(("expected some of r, w and m".to_owned(), at));
    }
    if words.next().is_some() {
        return Err(("expected nothing after the access".to_owned(), end));
    }
    let may = |letter| access.contains(letter);
    Ok(DeviceRule { class, major, minor, read: may('r'), write: may('w'), mknod: may('m') })
}

//! Group names in a path, percent-encoded as RFC 3986 has it. What comes out is checked as every name is; names from a
//! hierarchy's root are refused, so that no request reaches out of where our groups live.

use kernel::GroupName;

use super::Problem;

/// The group of a path's part.
pub(super) fn decoded(part: &str) -> Result<GroupName, Problem> {
    let bytes = unescaped(part.as_bytes())
        .ok_or_else(|| Problem::bad("a % in the path is not followed by two hex digits"))?;
    let name = String::from_utf8(bytes).map_err(|_| Problem::bad("the group's name is not UTF-8"))?;
    let group = GroupName::new(&name)?;
    if group.is_from_root() {
        return Err(Problem::forbidden(format!("group '{group}' is named from a hierarchy's root")).hint(
            "groups of ours are named without a leading slash; root changes others by itself: ringfence set",
        ));
    }
    Ok(group)
}

/// A group's name as a path's part.
pub(super) fn encoded(group: &GroupName) -> String {
    let name = group.to_string();
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte))
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// `None` for a `%` without two hex digits.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = after;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_survives_the_way_through_a_path() {
        for name in ["db/oltp1", "db.1-ü", "a b", "50%", "%2e%2e", "x?y#z", "r/s/t"] {
            assert_eq!(decoded(&encoded(&GroupName::new(name).unwrap())).unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_could_lead_elsewhere_is_refused_however_it_is_written() {
        for part in [
            "",
            "..",
            "../x",
            "a/../../b",
            "%2e%2e",
            "%2E%2e%2fx",
            "a/%2e%2e/b",
            "a%00b",
            "a%0ab",
            "cgroup.procs",
            "a/memory.max",
            "tasks",
            "/",
            "/etc",
            "%2fetc",
            "a//b",
            "%",
            "%2",
            "%zz",
            "%ff%fe",
            "./a",
        ] {
            assert!(decoded(part).is_err_and(|refused| matches!(refused.status, 400 | 403)), "{part}");
        }
        assert!(decoded(&"a".repeat(256)).is_err() && decoded(&"a/".repeat(2000)).is_err());
    }
}

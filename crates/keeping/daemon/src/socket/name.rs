//! Group names in a path, percent-encoded as RFC 3986 has it. What comes out is checked as every name is; names from a
//! hierarchy's root are refused, so that no request reaches out of where our groups live.

use answers::Problem;
use kernel::GroupName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but the unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The group of a path's part.
pub(super) fn decoded(part: &str) -> Result<GroupName, Problem> {
    let is_escape = |rest: &str| rest.len() > 1 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !part.split('%').skip(1).all(is_escape) {
        return Err(Problem::invalid("a % in the path is not followed by two hex digits"));
    }
    let name = percent_decode_str(part).decode_utf8();
    let name = name.map_err(|_| Problem::invalid("the group's name is not UTF-8"))?;
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
    utf8_percent_encode(&group.to_string(), RESERVED).to_string()
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

//! Removes groups that were made on demand and are empty: no task in them, no group below. Only groups whose names a
//! rule with codes can have made.

use kernel::{GroupName, Host};
use layout::{Code, Expression, NamePattern, Part, Rule};

/// Removes them, and returns which. What is filled meanwhile stays.
///
/// # Errors
/// The groups can't be listed.
pub fn sweep(host: &Host, rules: &[Rule]) -> Result<Vec<GroupName>, kernel::Error> {
    let patterns = rules.iter().flat_map(|rule| &rule.targets).map(|target| &target.group);
    let made: Vec<Expression> =
        patterns.filter(|pattern| pattern.name().is_none()).filter_map(made_by).collect();
    if made.is_empty() {
        return Ok(Vec::new());
    }
    let mut swept = Vec::new();
    for name in host.list(&GroupName::base())?.into_keys() {
        if !made.iter().any(|pattern| pattern.is_in(&name)) {
            continue;
        }
        let Ok(group) = GroupName::new(&name) else { continue };
        if is_empty(host, &group) && host.delete(&group, false).is_ok() {
            swept.push(group);
        }
    }
    Ok(swept)
}

fn is_empty(host: &Host, group: &GroupName) -> bool {
    let seats = host.seats(group);
    let empty = |seat: &kernel::Seat<'_>| {
        let children = host.kernel().children(seat.at, &seat.path);
        host.tasks_in(seat).is_empty() && children.is_ok_and(|children| children.is_empty())
    };
    !seats.is_empty() && seats.iter().all(empty)
}

/// What the names that a pattern makes are like. Codes never hold a slash.
fn made_by(pattern: &NamePattern) -> Option<Expression> {
    let mut expression = "^".to_owned();
    for part in pattern.parts() {
        match part {
            Part::Text(text) => {
                for c in text.chars() {
                    if c.is_ascii_punctuation() {
                        expression.push('\\');
                    }
                    expression.push(c);
                }
            }
            Part::Code(Code::Uid | Code::Gid | Code::Pid) => expression.push_str("[0-9]+"),
            Part::Code(Code::User | Code::Group | Code::Process) => expression.push_str("[^/]+"),
        }
    }
    expression.push('$');
    Expression::new(&expression).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_pattern_can_have_made_are_its() {
        for (pattern, name, its) in [
            ("students/%u", "students/peter", true),
            ("students/%u", "students/peter/x", false),
            ("students/%u", "students", false),
            ("s.x/%U", "s.x/1001", true),
            ("s.x/%U", "sax/1001", false),
            ("s/%U", "s/peter", false),
            ("%g-%P/a", "dba-17/a", true),
            ("a-b c/%p", "a-b c/cp", true),
        ] {
            let pattern = NamePattern::new(pattern).unwrap();
            assert_eq!(made_by(&pattern).unwrap().is_in(name), its, "{pattern} {name}");
        }
    }
}

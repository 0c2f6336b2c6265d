//! Strict rules that name a shell: what goes wrong with the exec gate goes wrong with every login and script. Reads where
//! links lead, and nothing else.

use std::path::Path;

use layout::{Process, Rule};

/// What is to be said of such a rule.
pub const STRICT_SHELL: &str = "strict rule for a shell: every login and script then waits for the exec gate, up to 2 s while \
    neither the gate nor the daemon can run, and without limit while root keeps the gate in a frozen v1 freezer group";

/// Shells by the last part of their path.
const SHELLS: [&str; 10] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "tcsh", "csh", "busybox"];

/// The strict rules for a shell, by its own path or through links.
pub fn strict_shells(rules: &[Rule]) -> impl Iterator<Item = &Rule> {
    rules.iter().filter(|rule| {
        rule.matcher.strict
            && matches!(&rule.matcher.process, Some(Process::Path(path)) if is_shell(Path::new(path)))
    })
}

fn is_shell(path: &Path) -> bool {
    let named = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| SHELLS.contains(&name))
    };
    named(path) || path.canonicalize().is_ok_and(|target| named(&target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_rule_for_a_shell_or_a_link_to_one_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("login");
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        let text = format!(
            "[groups.a]\nmatch = [{{ process = \"/bin/bash\", strict = true }}, {{ process = \"/bin/cat\", strict = true }},\n\
             {{ process = \"{}\", strict = true }}, {{ process = \"/bin/zsh\" }}]\n",
            link.display()
        );
        let read = layout::read_toml(&[layout::Source::new("layout.toml", &text)]);
        let rules = read.desired.unwrap().all_rules();
        let found: Vec<String> = strict_shells(&rules)
            .map(|rule| match &rule.matcher.process {
                Some(Process::Path(path)) => path.to_string(),
                _ => unreachable!(),
            })
            .collect();
        assert_eq!(found, ["/bin/bash".to_owned(), link.display().to_string()]);
    }
}

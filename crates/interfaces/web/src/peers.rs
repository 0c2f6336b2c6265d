//! Who may connect: the user who runs the server, and if that is root by way of sudo, the user behind it, whose browser it is.
//! The kernel says whose socket the other end of a connection is.

use std::sync::{Mutex, PoisonError};

use daemon::peers::Peer;
use system::Accounts;

/// The users who may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed(Vec<u32>);

impl Allowed {
    /// Of this process.
    pub fn of_this_process() -> Allowed {
        let own = rustix::process::geteuid().as_raw();
        let login = std::fs::read_to_string("/proc/self/loginuid").ok();
        let sudo = std::env::var("SUDO_UID").ok();
        Allowed::of(own, login.as_deref(), sudo.as_deref())
    }

    /// `login`: who logged in, as the kernel notes it; `sudo`: who called sudo, as root's environment says.
    fn of(own: u32, login: Option<&str>, sudo: Option<&str>) -> Allowed {
        let mut all = vec![own];
        if own == 0 {
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|uid| *uid != u32::MAX);
            all.extend(sudo.and_then(number).or_else(|| login.and_then(number)).filter(|uid| *uid != own));
        }
        Allowed(all)
    }

    /// May this one?
    pub fn has(&self, peer: Peer) -> bool {
        matches!(peer, Peer::User(uid) if self.0.contains(&uid))
    }
}

/// Users that are named; more than these are nobody's mistake.
const NAMED: usize = 8;

/// Who was refused and named for it: once each, so that nobody fills the terminal.
#[derive(Debug, Default)]
pub struct Refused(Mutex<Vec<u32>>);

impl Refused {
    /// What to say of a peer that got no answer, the first time.
    pub fn words(&self, peer: Peer, allowed: &Allowed) -> Option<String> {
        // of a connection that is closed already the kernel names nobody
        let Peer::User(uid) = peer else { return None };
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if named.contains(&uid) || named.len() >= NAMED {
            return None;
        }
        named.push(uid);
        let accounts = Accounts::new();
        let name = |uid: u32| accounts.user_name(uid).unwrap_or_else(|| format!("number {uid}"));
        let own = allowed.0.iter().map(|uid| name(*uid)).collect::<Vec<_>>().join(" and ");
        let other = name(uid);
        Some(format!(
            "a program of user {other} connected and got no answer: those of {own} do, and tunnels of ssh that are theirs"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn the_user_and_the_one_behind_sudo_may_connect_and_nobody_else() {
        let own = Allowed::of(1000, Some("1000"), Some("1001"));
        assert!(own.has(Peer::User(1000)));
        for peer in
            [Peer::User(0), Peer::User(1001), Peer::Unknown, Peer::Address(IpAddr::from([127, 0, 0, 1]))]
        {
            assert!(!own.has(peer), "{peer:?}");
        }
        assert_eq!(Allowed::of(0, Some("1000\n"), None), Allowed(vec![0, 1000]));
        assert_eq!(Allowed::of(0, Some("1000"), Some("1001")), Allowed(vec![0, 1001]));
        assert_eq!(Allowed::of(0, Some("4294967295"), None), Allowed(vec![0]));
        assert_eq!(Allowed::of(0, None, Some("x")), Allowed(vec![0]));
    }

    #[test]
    fn each_user_who_is_refused_is_named_once_and_a_crowd_is_not() {
        let (refused, own) = (Refused::default(), Allowed(vec![0]));
        let words = refused.words(Peer::User(4_000_000), &own).unwrap();
        assert!(words.contains("user number 4000000") && words.contains("those of root do"), "{words}");
        assert_eq!(refused.words(Peer::User(4_000_000), &own), None);
        assert_eq!(refused.words(Peer::Unknown, &own), None);
        let all = (4_000_000..4_001_000).filter_map(|uid| refused.words(Peer::User(uid), &own));
        assert_eq!(all.count(), NAMED - 1);
    }
}

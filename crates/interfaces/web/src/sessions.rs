//! One-time tokens and the sessions that they are exchanged for.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use rustix::rand::{GetRandomFlags, getrandom};

/// Sessions at once: each browser has one.
const SESSIONS: usize = 16;
/// A token that nobody used is worth nothing after this.
const UNUSED: Duration = Duration::from_secs(600);

/// Random bytes of a token or a session's cookie.
const BYTES: usize = 32;
type Secret = [u8; BYTES];

/// Tokens and sessions of one server.
#[derive(Debug)]
pub struct Sessions {
    length: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// At most one, with the moment from which on it is worth nothing.
    token: Option<(Secret, Instant)>,
    sessions: Vec<Session>,
}

/// A session.
#[derive(Debug, Clone)]
struct Session {
    secret: Secret,
    ends: Instant,
    ends_at: SystemTime,
}

impl Sessions {
    /// None yet; each lasts so long.
    pub fn new(length: Duration) -> Sessions {
        Sessions { length, state: Mutex::default() }
    }

    /// How long one lasts.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// A new token in hexadecimal, which replaces one that nobody used.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn token(&self) -> rustix::io::Result<String> {
        let secret = random()?;
        self.state().token = Some((secret, Instant::now() + UNUSED));
        Ok(hexadecimal(&secret))
    }

    /// The value of a new session's cookie for the token, which is worth nothing from then on; `None` for another one.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn open(&self, token: &str) -> rustix::io::Result<Option<String>> {
        let secret = random()?;
        let mut state = self.state();
        let now = Instant::now();
        let fits = |(expected, until): &(Secret, Instant)| is_same(expected, token) && now < *until;
        if !state.token.as_ref().is_some_and(fits) {
            return Ok(None);
        }
        state.token = None;
        state.sessions.retain(|session| now < session.ends);
        if state.sessions.len() >= SESSIONS {
            state.sessions.remove(0);
        }
        state.sessions.push(Session {
            secret,
            ends: now + self.length,
            ends_at: SystemTime::now() + self.length,
        });
        Ok(Some(hexadecimal(&secret)))
    }

    /// When the session of this cookie ends; `None`: there is none.
    pub fn ends(&self, cookie: &str) -> Option<SystemTime> {
        let (state, now) = (self.state(), Instant::now());
        let found = state.sessions.iter().find(|session| is_same(&session.secret, cookie));
        found.filter(|session| now < session.ends).map(|session| session.ends_at)
    }

    /// Ends the session of this cookie.
    pub fn close(&self, cookie: &str) {
        self.state().sessions.retain(|session| !is_same(&session.secret, cookie));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random() -> rustix::io::Result<Secret> {
    let mut secret = [0; BYTES];
    let mut have = 0;
    while have < BYTES {
        have += getrandom(&mut secret[have..], GetRandomFlags::empty())?;
    }
    Ok(secret)
}

fn hexadecimal(secret: &Secret) -> String {
    secret.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes as long for any text of that length.
fn is_same(secret: &Secret, text: &str) -> bool {
    let expected = hexadecimal(secret);
    let pairs = expected.bytes().zip(text.bytes());
    expected.len() == text.len() && pairs.fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_one_session_once() {
        let sessions = Sessions::new(Duration::from_secs(60));
        assert_eq!(sessions.open("").unwrap(), None, "before any token");
        let token = sessions.token().unwrap();
        assert_eq!(sessions.open("0").unwrap(), None);
        let cookie = sessions.open(&token).unwrap().unwrap();
        assert_eq!(sessions.open(&token).unwrap(), None, "used");
        assert!(
            sessions.ends(&cookie).is_some()
                && sessions.ends(&token).is_none()
                && sessions.ends("").is_none()
        );
        let other = sessions.token().unwrap();
        assert!(other != token && sessions.open(&token).unwrap().is_none());
        sessions.close(&cookie);
        assert!(sessions.ends(&cookie).is_none());
    }

    #[test]
    fn a_session_ends_by_itself_and_a_flood_of_them_ends_the_oldest() {
        let sessions = Sessions::new(Duration::ZERO);
        let token = sessions.token().unwrap();
        let cookie = sessions.open(&token).unwrap().unwrap();
        assert!(sessions.ends(&cookie).is_none());
        let sessions = Sessions::new(Duration::from_secs(60));
        let open = || {
            let token = sessions.token().unwrap();
            sessions.open(&token).unwrap().unwrap()
        };
        let cookies: Vec<String> = (0..=SESSIONS).map(|_| open()).collect();
        assert!(sessions.ends(&cookies[0]).is_none() && sessions.ends(&cookies[SESSIONS]).is_some());
    }
}

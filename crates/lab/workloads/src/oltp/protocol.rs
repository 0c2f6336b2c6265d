//! What clients and server say to each other: records of a fixed size, one at a time in each direction.

use std::path::{Path, PathBuf};

/// What a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// An account's balance.
    Select { account: u64 },
    /// TPC-B's transaction: the amount is added to an account, a teller and the branch, and written into the history.
    Transfer { account: u64, teller: u64, amount: i64 },
}

/// Bytes of a question.
pub(super) const ASK: usize = 25;

/// Bytes of an answer: whether it was done, and the account's balance.
pub(super) const ANSWER: usize = 9;

/// Tellers of a shard, which is a branch (TPC-B, clause 4.2).
pub(super) const TELLERS: u64 = 10;

impl Request {
    pub fn encode(self) -> [u8; ASK] {
        let (kind, account, teller, amount) = match self {
            Request::Select { account } => (0, account, 0, 0),
            Request::Transfer { account, teller, amount } => (1, account, teller, amount),
        };
        let mut record = [kind; ASK];
        record[1..9].copy_from_slice(&account.to_le_bytes());
        record[9..17].copy_from_slice(&teller.to_le_bytes());
        record[17..25].copy_from_slice(&amount.to_le_bytes());
        record
    }

    pub fn decode(record: &[u8; ASK]) -> Option<Request> {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&record[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        match record[0] {
            0 => Some(Request::Select { account: word(1) }),
            1 => {
                Some(Request::Transfer { account: word(1), teller: word(9), amount: word(17).cast_signed() })
            }
            _ => None,
        }
    }
}

/// An answer; `None`: there is no such account.
pub(super) fn answer(balance: Option<i64>) -> [u8; ANSWER] {
    let mut record = [u8::from(balance.is_some()); ANSWER];
    record[1..9].copy_from_slice(&balance.unwrap_or(0).to_le_bytes());
    record
}

/// Did it do that?
pub(super) fn is_done(answer: &[u8; ANSWER]) -> bool {
    answer[0] == 1
}

/// The socket of a worker.
pub(super) fn socket(directory: &Path, worker: u64) -> PathBuf {
    directory.join(format!("worker-{worker}.socket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_arrives_as_it_was_asked() {
        for request in [
            Request::Select { account: u64::MAX },
            Request::Transfer { account: 7, teller: 3, amount: -5000 },
        ] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        assert_eq!(Request::decode(&[9; ASK]), None);
        assert!(is_done(&answer(Some(-1))) && !is_done(&answer(None)));
    }
}

//! A worker's shard of the database, and its part of the server's memory. A shard is a branch of TPC-B with its tellers
//! and accounts; only its worker opens it.

use std::{hint::black_box, path::Path};

use rusqlite::{Connection, OptionalExtension, params};

use super::protocol::{Request, TELLERS};

/// Pages of the worker's memory that a transaction visits, and the words that it reads of each: with 1 GB that is half
/// of what a select costs, with 64 MB a fifth.
const VISITS: u64 = 16;
const WORDS: usize = 64;

/// Words of a page of 4 KB.
const PAGE: usize = 512;

/// An account's row is as long as TPC-B's.
const FILLER: &str = "                                                                                    ";

const TABLES: &str = "
    pragma journal_mode = wal;
    pragma synchronous = off;
    drop table if exists branches; drop table if exists tellers;
    drop table if exists accounts; drop table if exists history;
    create table branches (id integer primary key, balance integer not null, filler text);
    create table tellers (id integer primary key, balance integer not null, filler text);
    create table accounts (id integer primary key, balance integer not null, filler text);
    create table history (teller integer, account integer, amount integer, at integer, filler text);";

/// Sums that must be one: each transfer adds the same amount to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sums {
    pub accounts: i64,
    pub tellers: i64,
    pub branches: i64,
    /// Rows of the history, which is emptied when the shard is opened.
    pub history: u64,
}

/// An open shard.
pub(super) struct Shard {
    database: Connection,
    memory: Vec<u64>,
}

/// Makes a shard again, filled.
pub(super) fn fill(path: &Path, rows: u64) -> rusqlite::Result<()> {
    let mut database = Connection::open(path)?;
    database.execute_batch(TABLES)?;
    let filling = database.transaction()?;
    filling.execute("insert into branches values (1, 0, ?)", [FILLER])?;
    for (table, count) in [("tellers", TELLERS), ("accounts", rows)] {
        let mut insert = filling.prepare(&format!("insert into {table} values (?, 0, ?)"))?;
        for id in 1..=count {
            insert.execute(params![id.cast_signed(), FILLER])?;
        }
    }
    filling.commit()
}

impl Shard {
    /// Opens it and makes its memory, every page of it.
    pub fn open(path: &Path, memory: u64) -> rusqlite::Result<Shard> {
        let database = Connection::open(path)?;
        // the shard stays in memory once it was read: 64 MB at most
        database
            .execute_batch("pragma synchronous = off; pragma cache_size = -65536; delete from history;")?;
        let words = usize::try_from(memory / 8).unwrap_or(0).next_multiple_of(PAGE);
        // written, as pages of zeroes are none until then
        let memory = (0..words as u64).map(|word| word | 1).collect();
        Ok(Shard { database, memory })
    }

    /// Does what is requested; `None`: there is no such account. Each statement is parsed and planned again, as most
    /// applications have it done: prepared once, a select is little more than its two system calls.
    pub fn serve(&mut self, request: Request) -> rusqlite::Result<Option<i64>> {
        match request {
            Request::Select { account } => {
                self.visit(account);
                let mut select = self.database.prepare("select balance from accounts where id = ?")?;
                select.query_row([account.cast_signed()], |row| row.get(0)).optional()
            }
            Request::Transfer { account, teller, amount } => {
                self.visit(account);
                self.transfer(account.cast_signed(), teller.cast_signed(), amount)
            }
        }
    }

    fn transfer(&mut self, account: i64, teller: i64, amount: i64) -> rusqlite::Result<Option<i64>> {
        // undone when it is dropped before its commit
        let transfer = self.database.transaction()?;
        let add = "update accounts set balance = balance + ? where id = ? returning balance";
        let balance =
            transfer.prepare(add)?.query_row(params![amount, account], |row| row.get(0)).optional()?;
        let add = "update tellers set balance = balance + ? where id = ?";
        let found = transfer.prepare(add)?.execute(params![amount, teller])?;
        if balance.is_none() || found == 0 {
            return Ok(None);
        }
        let add = "update branches set balance = balance + ?";
        transfer.prepare(add)?.execute([amount])?;
        let insert = "insert into history values (?, ?, ?, unixepoch(), '')";
        transfer.prepare(insert)?.execute(params![teller, account, amount])?;
        transfer.commit()?;
        Ok(balance)
    }

    /// Visits pages as a buffer cache does: reads words of each, and counts the visit in it.
    fn visit(&mut self, account: u64) {
        let pages = (self.memory.len() / PAGE) as u64;
        if pages == 0 {
            return;
        }
        for visit in 0..VISITS {
            // the upper bits of the product depend on all of the number's
            let number = account.wrapping_mul(VISITS).wrapping_add(visit);
            let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let begin = (hash % pages) as usize * PAGE;
            let page = &mut self.memory[begin..begin + PAGE];
            black_box(page[..WORDS].iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
            page[PAGE - 1] = page[PAGE - 1].wrapping_add(1);
        }
    }

    /// Adds up its tables.
    pub fn sums(&self) -> rusqlite::Result<Sums> {
        let one = |query: &str| self.database.query_row(query, [], |row| row.get::<_, i64>(0));
        let sum = |table: &str| one(&format!("select coalesce(sum(balance), 0) from {table}"));
        Ok(Sums {
            accounts: sum("accounts")?,
            tellers: sum("tellers")?,
            branches: sum("branches")?,
            history: one("select count(*) from history")?.cast_unsigned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_visits_pages_all_over_its_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shard");
        fill(&path, 1).unwrap();
        let pages = 1000;
        let mut shard = Shard::open(&path, pages * PAGE as u64 * 8).unwrap();
        let before = shard.memory.clone();
        for account in 0..100 {
            shard.visit(account);
        }
        let changed = before.chunks(PAGE).zip(shard.memory.chunks(PAGE)).filter(|(one, other)| one != other);
        // by chance 798 of them; were all visits of an account to one page, at most 100
        let changed = changed.count();
        assert!(changed > 700, "{changed}");
    }

    #[test]
    fn a_transfer_keeps_the_sums_equal_or_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shard");
        fill(&path, 20).unwrap();
        let mut shard = Shard::open(&path, 10_000).unwrap();
        let transfer = |account, teller, amount| Request::Transfer { account, teller, amount };
        assert_eq!(shard.serve(transfer(7, 3, 40)).unwrap(), Some(40));
        assert_eq!(shard.serve(transfer(7, 10, -15)).unwrap(), Some(25));
        assert_eq!(shard.serve(Request::Select { account: 7 }).unwrap(), Some(25));
        for none in [transfer(21, 1, 9), transfer(1, 11, 9), Request::Select { account: 0 }] {
            assert_eq!(shard.serve(none).unwrap(), None, "{none:?}");
        }
        let sums = Sums { accounts: 25, tellers: 25, branches: 25, history: 2 };
        assert_eq!(shard.sums().unwrap(), sums);
        drop(shard);
        // balances stay, the history begins again
        assert_eq!(Shard::open(&path, 0).unwrap().sums().unwrap(), Sums { history: 0, ..sums });
    }
}

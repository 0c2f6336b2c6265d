//! The built-in OLTP: a server and its clients as separate processes that speak over Unix sockets, so that what a
//! division does to the scheduling of both is seen. The database is SQLite, a shard of its own for each of the server's
//! workers, as SQLite has one writer. Commits are not forced to a disk: it is CPUs and memory that are compared.

mod clients;
mod pace;
mod protocol;
mod server;
mod shard;

pub use clients::{FIRST_BURST, main_oltp_clients};
pub use server::{ServerReport, main_oltp_server};

//! The fields of every answer, once: what the command line prints with `--json`, what the daemon's socket sends, and what the page
//! and the daemon's clients read of both. A field that is renamed here is renamed for all of them, or nothing compiles;
//! docs/json.md and the recordings of the Ansible modules' tests are compared with these types.
//!
//! Only data: nothing is looked at or decided. Answers that show a plan or a record have those types of `plan` and `apply` in
//! them, as these are written in one form anyway. The tables of requests and the maker of the OpenAPI documents are here, too, as both servers have one.

mod diagnostic;
pub mod openapi;
mod problem;
mod published;
pub mod routes;
mod value;

pub mod layouts;
pub mod socket;

mod refused;

pub use diagnostic::{Also, Diagnostic, Origin, Severity};
pub use problem::{Problem, ProblemKind, SocketProblem};
pub use published::{moment, published};
pub use refused::{Reason, Refused};
pub use value::{AmountJson, ClassJson, CpuMaxJson, RuleJson, SettingJson};

//! The bodies of requests and answers. The OpenAPI document is made from these types. Only data: no I/O.

pub mod groups;
pub mod lab;
pub mod layouts;
pub mod machine;
pub mod session;
pub mod value;

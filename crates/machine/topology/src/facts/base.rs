//! Where the groups of ours live.

/// The slice and service that systemd makes for our groups: a top-level slice, so that our weight is counted
/// beside `system.slice` and `user.slice`, with one delegated service in it.
pub const UNIT_SLICE: &str = "ringfence.slice";
/// The delegated service.
pub const UNIT_NAME: &str = "ringfence.service";
/// Where the service's control group is.
pub const UNIT_PATH: &str = "ringfence.slice/ringfence.service";

/// Where our groups live in one hierarchy, and why there.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// A plain host: the hierarchy's root.
    Root,
    /// A systemd host: a delegated unit that systemd made for us; never beside its own slices.
    Unit,
    /// A container or user session: the subtree that we were started in.
    Own(String),
}

impl Base {
    /// The path below the mount, "" for the root.
    pub fn path(&self) -> &str {
        match self {
            Base::Root => "",
            Base::Unit => UNIT_PATH,
            Base::Own(path) => path,
        }
    }
}

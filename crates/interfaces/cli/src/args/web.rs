//! The arguments of `web`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args as ClapArgs;

use super::{LogArgs, Socket, StateArgs, duration::between};

pub const WEB: &str = "\
Prints a URL that opens one session in a browser, once. Return in this terminal prints another one; Ctrl-C ends the server and
all sessions. The page reads what this user may read. With --write it also changes what this user may change, as the commands
set, apply, confirm and undo do; what the user lacks permission for goes to ringfenced, if it is running.

Only this user's programs on this machine can connect. From elsewhere, forward a port and open the URL there:
  ssh -L 8080:127.0.0.1:8080 db1 -t ringfence web --listen 127.0.0.1:8080
If your end has another port, put that into the URL.

Examples:
  ringfence web --open
  sudo ringfence web --write
  ringfence web --listen 127.0.0.1:8080 db rt";

#[derive(Debug, ClapArgs)]
pub struct Web {
    /// Only these groups and those below them; / for everything on the machine [default: all groups of Ringfence and the units of the layout]
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Allow changes; without it the page only reads
    #[arg(long)]
    pub write: bool,
    /// Loopback address and port; port 0 is a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Open the URL in the user's browser, with xdg-open
    #[arg(long)]
    pub open: bool,
    /// How long a session lasts, 1s to 7d
    #[arg(long, value_name = "TIME", default_value = "12h", value_parser = between("1s", "7d"))]
    pub session: Duration,
    /// Directory with results of experiments
    #[arg(long, value_name = "DIRECTORY", default_value = "ringfence-results")]
    pub results: PathBuf,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub state: StateArgs,
    #[command(flatten)]
    pub socket: Socket,
}

//! Temporary.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use kernel::*;
fn main() {
    let host = Host::new(Box::new(Real::new())).unwrap();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let args: Vec<String> = std::env::args().collect();
    match ensure_unit(&host) {
        Ok(()) => println!("ensure: ok (threads after: {})", threads()),
        Err(error) => println!("ensure: error: {error}\nhint: {:?} (threads {})", error.hint(), threads()),
    }
    if let Some(group) = args.get(1) {
        let group = GroupName::new(group).unwrap();
        let made = host.create(&group, None, &Access::default());
        match made {
            Ok(made) => println!("create: {:?}", made.directories),
            Err(error) => println!("create: {error} {:?}", error.hint()),
        }
        for seat in host.seats(&group) {
            for pair in &args[2..] {
                let (file, value) = pair.split_once('=').unwrap();
                match host.write(&seat, &group, file, value) {
                    Ok(()) => println!("{file} ok in {}", seat.directory().display()),
                    Err(error) => println!("{error}"),
                }
            }
        }
    }
}

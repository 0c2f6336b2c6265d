//! Temporary.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use kernel::Access;
use kernel::*;
use settings::*;
fn main() {
    let host = Host::new(Box::new(Real::new())).unwrap();
    let args: Vec<String> = std::env::args().collect();
    let name = GroupName::new(&args[1]).unwrap();
    let at = host.hierarchies().iter().find(|at| at.version == Version::V2).unwrap();
    if args[2] == "make" {
        println!(
            "{:?}",
            host.create(&name, Some(&[Controller::Core]), &Access::default()).map(|c| c.directories)
        );
        return;
    }
    if args[2] == "rm" {
        println!("{:?}", host.delete(&name, true));
        return;
    }
    let seat = host.seat_in(at, &name);
    let show = |e: Error| println!("error: {e}\nhint: {:?}", e.hint());
    match args[2].as_str() {
        "list" => match host.read_devices(&seat, &name) {
            Ok(t) => print!("{t}"),
            Err(e) => show(e),
        },
        "many" => {
            for i in 0..args[3].parse::<u32>().unwrap() {
                if let Err(e) = host.write_devices(
                    &seat,
                    &name,
                    "devices.deny",
                    &format!("c {}:{} rwm", i / 4000 + 10, i % 4000),
                ) {
                    println!("at {i}");
                    show(e);
                    break;
                }
            }
        }
        file => match host.write_devices(&seat, &name, file, &args[3]) {
            Ok(()) => println!("ok"),
            Err(e) => show(e),
        },
    }
}

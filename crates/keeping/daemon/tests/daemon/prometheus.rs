//! Debian's Prometheus and its promtool, as `scripts/install test` brings them: unpacked, as the installed package would
//! start a server of its own.

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{metrics_scene::get, world::eventually};

/// One of their programs.
pub fn program(name: &str) -> PathBuf {
    let unpacked =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/prometheus/usr/bin")).join(name);
    let places = std::env::var("PATH").unwrap();
    let mut all = places.split(':').map(|at| Path::new(at).join(name)).chain([unpacked]);
    all.find(|file| file.is_file())
        .unwrap_or_else(|| panic!("there is no {name}; hint: scripts/install test"))
}

/// What promtool has to say of the text format.
pub fn check(text: &str) {
    // the VMs have none
    if crate::is_vm() {
        return;
    }
    let mut command = Command::new(program("promtool"));
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = command.spawn().unwrap();
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}\n{text}");
}

/// A server that scrapes one address, with its data in a directory of the test.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Prometheus {
    pub fn start(directory: &Path, target: SocketAddr) -> Prometheus {
        let config = format!(
            "global: {{ scrape_interval: 3s }}\nscrape_configs:\n- job_name: ringfence\n  static_configs:\n  - targets: ['{target}']\n"
        );
        std::fs::write(directory.join("prometheus.yml"), config).unwrap();
        // it can't choose a port itself
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let log = directory.join("prometheus.log");
        let file = std::fs::File::create(&log).unwrap();
        let child = Command::new(program("prometheus"))
            .arg(format!("--config.file={}", directory.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap();
        let mut server = Prometheus { child, address, log };
        eventually("prometheus is ready", || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", server.log());
            get(address, "GET /-/ready", "").is_some_and(|answer| answer.status == 200)
        });
        server
    }

    /// The series that a query finds now, each with its value.
    pub fn query(&self, query: &str) -> Vec<(serde_json::Value, f64)> {
        let coded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = get(self.address, &format!("GET /api/v1/query?query={coded}"), "").unwrap();
        let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(told["status"], "success", "{told}");
        let series = told["data"]["result"].as_array().unwrap().iter();
        series
            .map(|one| (one["metric"].clone(), one["value"][1].as_str().unwrap().parse().unwrap()))
            .collect()
    }

    /// The type that it was told of a family.
    pub fn kind(&self, family: &str) -> serde_json::Value {
        let answer = get(self.address, &format!("GET /api/v1/metadata?metric={family}"), "").unwrap();
        let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        told["data"][family][0]["type"].clone()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

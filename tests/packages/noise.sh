# What `isolate check` counts beside what rtla osnoise counts on the same CPU in the same span, and its verdict when somebody puts
# an interrupt back on an isolated CPU. In a virtual machine with systemd: see scripts/test-packages.
. ./checks.sh
seconds=${RF_SECONDS:-20}
# the last CPU: few of them, as each takes the emulator its share of the time
cpu=$(($(nproc) - 1))
[ ! -d packages ] || check "the package installs" installed packages/ringfence_*.deb
link=$(ls /sys/class/net | grep -v -m 1 '^lo$')
ip address add 10.0.2.15/24 dev "$link"
ip link set "$link" up
ping() { /rf-vm/busybox ping -q -i 0.02 -w "$1" 10.0.2.2 >/dev/null; }
verdict() { # EXIT-STATUS: under a load of the network, whose interrupts alone are above the budget
	ping 8 &
	ping=$!
	exits "$1" ringfence isolate check $cpu --for 5s --no-probe --budget "$budget"
	set -- $?
	wait $ping
	return "$1"
}
is_off() { case ",$1," in *,$cpu,* | *-$cpu,*) echo "'$1' has CPU $cpu" && return 1 ;; esac; }
cat >/tmp/layout.toml <<-END
	[groups.rt]
	cpus = "$cpu"
	exclusive = true
	isolate = "full"
END
echo "== Linux $(uname -r), $(rtla --version 2>&1 | head -n 1)"
# systemd mounts it where a unit of its own says so
[ -e /sys/kernel/tracing/available_tracers ] || mount -t tracefs tracefs /sys/kernel/tracing
check "the kernel has the tracer" grep -qw osnoise /sys/kernel/tracing/available_tracers
# rtla's thread runs on the CPU all the time, so that every interruption interrupts it
for round in 1 2 3; do
	rtla osnoise top --cpus $cpu --duration "$((seconds + 1))s" --quiet >/tmp/rtla 2>&1 &
	rtla=$!
	within 20 pgrep -x "osnoise/$cpu"
	ringfence isolate check $cpu --for "${seconds}s" --no-probe --json >/tmp/ours
	wait $rtla
	check "round $round: within 10 % of rtla's count" python3 -c '
import json
ours = json.load(open("/tmp/ours"))
counts = {"interrupt": 0, "softirq": 0, "context-switch": 0}
for cause in ours["cpus"][0]["causes"]:
    counts[cause["kind"]] += cause["count"]
span = ours["span_sec"]
row = next(line.split() for line in open("/tmp/rtla") if line.split()[:1] == ["'$cpu'"])
# CPU, period, runtime, noise, % of the CPU, longest noise, longest single, hardware, NMI, interrupts, softirqs, threads
period = float(row[2]) / 1e6
theirs = dict(zip(("interrupt", "softirq", "context-switch"), (int(row[-3]) + int(row[-4]), int(row[-2]), int(row[-1]))))
# a thread that interrupts is a switch to it and a switch back
counts["context-switch"] /= 2
for kind in counts:
    print(f"  {kind}: {counts[kind] / span:.1f} per second, rtla {theirs[kind] / period:.1f}")
ratio = sum(counts.values()) / span / (sum(theirs.values()) / period)
print(f"  together {ratio:.3f} of the count of rtla")
open("/tmp/ratio", "w").write(f"{ratio:.3f}")
assert 0.9 <= ratio <= 1.1, ratio'
	cat /tmp/rtla
	echo "       ratio $(cat /tmp/ratio)"
done
# both of its tracers as workloads of an experiment
cat >/tmp/rtla.toml <<-END
	name = "rtla"
	title = "rtla as a workload"
	about = "What the driver reads of it."
	repetitions = 1
	duration = "5s"
	warm-up = "0s"

	[gates]
	foreign-cpu = 1.0
	steal = 1.0
	retries = 0

	[workload.late]
	driver = "rtla"
	cpus = "$cpu"
	conditions = ["timerlat"]

	[workload.noise]
	driver = "rtla"
	tracer = "osnoise"
	cpus = "$cpu"
	conditions = ["osnoise"]

	[[condition]]
	name = "timerlat"

	[[condition]]
	name = "osnoise"

	[[measure]]
	name = "maximum"
	is = "late.latency.max"
	unit = "s"
	better = "lower"

	[[measure]]
	name = "interruptions"
	is = "noise.interruptions"
	unit = "/s"
	better = "lower"
END
rtla timerlat hist --cpus $cpu --duration 2s --priority f:95 --period 1000 --entries 512 | grep -v '^[0-9]* *0 *0$' | head -n 30
check "lab: runs with both tracers of rtla" exits 0 ringfence lab run /tmp/rtla.toml --directory /tmp/rtla-results
check "lab: what rtla prints is read" python3 -c '
import json
runs = json.load(open("/tmp/rtla-results/results.json"))["runs"]
late = next(run["latencies"]["late.latency"] for run in runs if run["condition"] == "timerlat")
noise = next(run["readings"] for run in runs if run["condition"] == "osnoise")
for run in runs:
    print(run["condition"], [note.get("text") for note in run["notes"]])
print(late, noise)
assert late["count"] >= 1000 and 0 < late["p50"] <= late["max"] < 5, late
assert 100 < noise["noise.interruptions"] < 100000 and 0 < noise["noise.noise"] < 1, noise'
cp -r /tmp/rtla-results/. /tmp/rtla-files
cat $(find /tmp/rtla-files -type f -name '*rtla*' | head -n 4) | head -n 60
check "apply" exits 0 ringfence apply /tmp/layout.toml
interrupt=$(sed -n 's/^ *\([0-9]*\):.*virtio.*-input.*/\1/p' /proc/interrupts | head -n 1)
place=/proc/irq/$interrupt/smp_affinity_list
check "the interrupt of $link is elsewhere" is_off "$(cat "$place")"
# the tick may go on there; the load adds 50 interrupts a second, each with a softirq
ringfence isolate check $cpu --for 5s --no-probe --json >/tmp/quiet
budget=$(python3 -c 'import json; print(int(json.load(open("/tmp/quiet"))["cpus"][0]["per_sec"] * 1.1 + 25))')
echo "       budget: $budget per second"
check "within the budget" verdict 0
echo $cpu >"$place"
check "above it with interrupt $interrupt put back" verdict 3
check "status names it" exits 3 ringfence status
check "apply repairs it" exits 0 ringfence apply /tmp/layout.toml
check "within the budget again" verdict 0
[ ! -s $failures ] || {
	grep . /sys/fs/cgroup/system.slice/ringfence.service/rt/cpuset.cpus* /sys/fs/cgroup/cpuset.cpus.isolated
	ps -eLo pid,tid,psr,pcpu,cls,comm --sort=-pcpu | awk -v "cpu=$cpu" 'NR == 1 || $3 == cpu' | head -n 20
	grep -H . /proc/irq/*/effective_affinity_list
}
check "undo" exits 0 ringfence undo 0
end

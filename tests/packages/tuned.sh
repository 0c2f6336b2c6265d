# CPU 3 isolated by TuneD's profiles cpu-partitioning and realtime and by Ringfence, one after the other in one virtual machine
# with systemd and PostgreSQL under load: who may run there, whose interrupts go there, what differs after it was taken back.
# See scripts/test-packages.
. ./checks.sh
isolated=3 all=0-3 seconds=${RF_SECONDS:-60}
export PYTHONDONTWRITEBYTECODE=1
quietly() { "$@" >/tmp/said 2>&1 || { cat /tmp/said && return 1; }; }
sql() { su postgres -c "psql --quiet --tuples-only --no-align --dbname postgres $1"; }
state() { python3 state.py >"$1"; }

# prints the CPUs of processes that start now: 500 of this shell, 200 units, and 300 that request every CPU as numerical
# libraries, taskset and virtual machines do
start_processes() {
	local left
	left=${RF_SHELL:-500}
	while [ $left -gt 0 ]; do
		/rf-vm/busybox grep Cpus_allowed_list /proc/self/status
		left=$((left - 1))
	done >/tmp/born-shell
	rm -f /tmp/born-unit
	# shellcheck disable=SC2046 # several names
	systemctl start $(seq -f 'rf-born@%.0f.service' 200)
	left=300
	while [ $left -gt 0 ]; do
		/rf-vm/busybox taskset -c $all /rf-vm/busybox grep Cpus_allowed_list /proc/self/status
		left=$((left - 1))
	done >/tmp/born-request
}
on_isolated() { # FILE: how many of its lines have the CPU
	awk -v cpu=$isolated '
		{ found = 0; count = split($2, ranges, ",")
		  for (i = 1; i <= count; i++) { split(ranges[i], ends, "-"); if (ends[2] == "") ends[2] = ends[1]
		    if (cpu >= ends[1] && cpu <= ends[2]) found = 1 }
		  sum += found }
		END { print sum + 0 }' "$1"
}
interrupts() { # those of devices that the isolated CPU has had
	awk -v cpu=$isolated '$1 ~ /^[0-9]+:$/ { sum += $(cpu + 2) } END { print sum }' /proc/interrupts
}
under_load() { # prints how many of the devices' interrupts go to the CPU
	local before ping
	before=$(interrupts)
	/rf-vm/busybox ping -q -i 0.02 -w "$seconds" 10.0.2.2 >/tmp/ping 2>&1 &
	ping=$!
	fio --name=disk --filename=/dev/vda --rw=randrw --bs=4k --direct=1 --rate_iops=100 --numjobs=2 \
		--time_based --runtime="$seconds" >/tmp/fio 2>&1
	wait $ping
	echo $(($(interrupts) - before))
}
session() { # a database's session that stays
	mkfifo "/tmp/sql$1"
	sql "" <"/tmp/sql$1" >/dev/null &
	eval "exec $2>/tmp/sql$1"
	echo 'select 1;' >"/tmp/sql$1"
}

prepare() {
	printf '[Service]\nType=oneshot\nExecStart=/rf-vm/busybox grep -h Cpus_allowed_list /proc/self/status\nStandardOutput=append:/tmp/born-unit\n' \
		>/etc/systemd/system/rf-born@.service
	systemctl daemon-reload
	link=$(ls /sys/class/net | grep -v -m 1 '^lo$')
	ip address add 10.0.2.15/24 dev "$link"
	ip link set "$link" up
	systemctl is-active --quiet postgresql@*-main || systemctl start postgresql
	within 60 sql '--command "select 1"' >/dev/null
	programs=$(ls -d /usr/lib/postgresql/*/bin)
	su postgres -c "$programs/pgbench --quiet --initialize --scale 1 postgres" 2>/dev/null
}
# every process as before the one that was tried before, and a load of the database
begin() {
	[ -z "$load" ] || { kill "$load" && exec 5>&-; }
	for task in /proc/[0-9]*; do taskset --all-tasks --cpu-list --pid $all "${task#/proc/}"; done >/dev/null 2>&1
	su postgres -c "exec $programs/pgbench --client 3 --rate 10 --time 36000 postgres" >/tmp/pgbench 2>&1 &
	load=$!
	session "load-$1" 5
}
load=

# applies by one, looks, and takes back: prints the figures
try() { # NAME APPLY… -- TAKE BACK…
	local name=$1 apply='' here there requests devices
	shift
	while [ "$1" != -- ]; do apply="$apply $1" && shift; done
	shift
	begin "$name"
	state "/tmp/before-$name"
	sleep 5
	state "/tmp/settled-$name"
	check "$name: isolates" quietly $apply
	echo "       $name: starts processes ($(cut -d' ' -f1 /proc/uptime) s)"
	start_processes
	echo "       $name: works ($(cut -d' ' -f1 /proc/uptime) s)"
	here=$(on_isolated /tmp/born-shell) there=$(on_isolated /tmp/born-unit) requests=$(on_isolated /tmp/born-request)
	devices=$(under_load)
	sleep 1000 &
	born=$!
	session "$name" 6
	within 20 pgrep -f '\[local\] idle'
	check "$name: is taken back" quietly "$@"
	state "/tmp/after-$name"
	python3 state.py compare "/tmp/before-$name" "/tmp/after-$name" "/tmp/settled-$name" >"/tmp/differing-$name"
	kill $born
	exec 6>&-
	printf '%s|%s|%s|%s|%s|%s|%s|%s|%s\n' "$name" "$(wc -l </tmp/born-shell)+$(wc -l </tmp/born-unit)+$(wc -l </tmp/born-request)" \
		"$here" "$there" "$requests" "$devices" "$(grep -c ^file "/tmp/differing-$name")" \
		"$(grep -c ^old "/tmp/differing-$name")" "$(grep -c ^born "/tmp/differing-$name")" >>/tmp/figures
	cut -c1-150 "/tmp/differing-$name" | awk -v name="$name" '{ kind[$1]++; if (kind[$1] <= 12) print "  " name ": " $0 }'
}

prepare
try nothing true -- true
printf 'isolated_cores=%s\n' $isolated | tee /etc/tuned/cpu-partitioning-variables.conf >/etc/tuned/realtime-variables.conf
systemctl start tuned
tuned-adm off
for profile in cpu-partitioning realtime; do
	# an error of a plugin that this machine lacks is none of the profile
	try $profile tuned-adm profile $profile -- tuned-adm off
done
systemctl stop tuned

# every row of the machine, at its usual value
page=/usr/share/doc/ringfence/docs/isolation.md
if [ -d packages ]; then
	check "the package installs" installed packages/ringfence_*.deb
else
	page=isolation.md
fi
cat >/tmp/layout.toml <<-END
	[groups.rt]
	cpus = "$isolated"
	exclusive = true
	isolate = "full"

	[isolate]
	$(awk '/^## / { of_machine = /^## Of the machine/ } /^### / { row = $2 }
		of_machine && /^- becomes: `/ { print row " = true" }' $page)
END
ours() { ringfence apply /tmp/layout.toml && ringfence status --json >/tmp/status; }
try ringfence ours -- ringfence undo 0
rows=$(python3 -c '
import json
status = json.load(open("/tmp/status"))
knobs = [knob for group in status["groups"] for knob in group.get("knobs") or []]
print(len({knob["knob"] for knob in knobs if knob["state"] in ("done", "by-kernel")}))')
echo "rows in effect without a reboot: $rows"

echo "|started|of the shell|of units|request every CPU|interrupts of devices|files|processes|born since"
cat /tmp/figures
tail -n 2 /tmp/ping /tmp/fio
figure() { sed -n "s/^$1|//p" /tmp/figures | cut -d'|' -f"$2"; }
check "without anything processes may run there" not is "$(figure nothing 2)" 0
check "without anything interrupts go there" not is "$(figure nothing 5)" 0
check "1,000 processes were started" is "$(figure ringfence 1)" 500+200+300
check "none of them may run there" is "$(figure ringfence 2) $(figure ringfence 3) $(figure ringfence 4)" '0 0 0'
check "no device interrupts it" is "$(figure ringfence 5)" 0
check "after undo every file and process is as before" is "$(figure ringfence 6) $(figure ringfence 7) $(figure ringfence 8)" '0 0 0'
check "at least 19 rows take effect without a reboot" [ "$rows" -ge 19 ]
end

# Debian's own PostgreSQL and a neighbour, divided by the package in a virtual machine with systemd: over reloads and
# reexecs under load, a restart and a reboot, and back: see scripts/test-packages.
. ./checks.sh
cluster=$(echo /var/lib/postgresql/*/main | cut -d/ -f5)
programs=/usr/lib/postgresql/$cluster/bin
db=postgresql@$cluster-main.service neighbour=rf-neighbour.service
disk=$(findmnt --noheadings --output SOURCE --target /var/lib/postgresql)
device=$(findmnt --noheadings --output MAJ:MIN --target /var/lib/postgresql | tr -d ' ')
node=/sys/devices/system/node
cpus=$(cat $node/node1/cpulist) others=$(cat $node/node0/cpulist)
cgroup() { systemctl show --value --property ControlGroup -- "$1"; }
again() { systemctl reboot && exit; }

layout() {
	cat <<-END
		[groups.db]
		unit = "$db"
		cpus = { node = 1 }
		mems = "local"
		memory.max = "400M"
		memory.low = "64M"
		pids.max = 200
		io.max."$disk" = { wbps = "200M", riops = 50000 }

		[groups.neighbour]
		unit = "$neighbour"
		cpus = { node = 0 }
		mems = "local"
		cpu.weight = 50
		memory.max = "64M"
	END
}
# unit, file and its content, property and its value
values() {
	cat <<-END
		$db|cpuset.cpus|$cpus|AllowedCPUs|$cpus
		$db|cpuset.mems|1|AllowedMemoryNodes|1
		$db|memory.max|$((400 << 20))|MemoryMax|$((400 << 20))
		$db|memory.low|$((64 << 20))|MemoryLow|$((64 << 20))
		$db|pids.max|200|TasksMax|200
		$db|io.max|$device rbps=max wbps=$((200 << 20)) riops=50000 wiops=max|IOWriteBandwidthMax|/dev/block/$device $((200 << 20))
		$db|io.max|$device rbps=max wbps=$((200 << 20)) riops=50000 wiops=max|IOReadIOPSMax|/dev/block/$device 50000
		$neighbour|cpuset.cpus|$others|AllowedCPUs|$others
		$neighbour|cpuset.mems|0|AllowedMemoryNodes|0
		$neighbour|cpu.weight|50|CPUWeight|50
		$neighbour|memory.max|$((64 << 20))|MemoryMax|$((64 << 20))
	END
}
# the same as the kernel and systemd have them
found() {
	local unit file content property value
	systemctl show $db | sed "s/^/$db /" >/tmp/shown
	systemctl show $neighbour | sed "s/^/$neighbour /" >>/tmp/shown
	while IFS='|' read -r unit file content property value; do
		read -r content <"/sys/fs/cgroup$(sed -n "s/^$unit ControlGroup=//p" /tmp/shown)/$file"
		value=$(sed -n "s/^$unit $property=//p" /tmp/shown)
		echo "$unit|$file|$content|$property|$value"
	done
}
# CPUs and nodes of the database's processes; one that has ended meanwhile has no line
places() {
	local process
	for process in $(cat "/sys/fs/cgroup$(cgroup $db)/cgroup.procs"); do
		sed -n 's/^\(Cpus\|Mems\)_allowed_list:\t//p' "/proc/$process/status" | paste -sd' '
	done 2>/dev/null | sed '/^$/d' | sort -u
}
in_force() { # WHEN
	values >/tmp/values
	found </tmp/values >/tmp/found
	check "$1: $(wc -l </tmp/values) files and as many properties" diff /tmp/values /tmp/found
	check "$1: CPUs and nodes of all processes" is "$(places)" "$cpus 1"
	check "$1: status" exits 0 ringfence status
}
# What systemd and the kernel have of the units and the slices above them. A counter is no state.
state() {
	local unit group
	for unit in $db $neighbour "$(systemctl show --value --property Slice $db)" system.slice -.slice; do
		systemctl show -- "$unit" | sed "s/^/$unit /" | sort | grep -E \
			' (CPU|Allowed|Effective(CPUs|Mem.*Nodes)|Startup|IO|Block|Memory|Tasks|Device|Delegate|DropIn|NeedDaemon|Disable)' |
			grep -Ev 'Current|Peak|Bytes=|Operations=|NSec|Available|AffinityFromNUMA'
		group=/sys/fs/cgroup$(cgroup "$unit")
		grep -H '' "$group"/cgroup.subtree_control "$group"/cpu.* "$group"/cpuset.* "$group"/memory.* "$group"/io.* "$group"/pids.* |
			grep -Ev '/[a-z.]*\.(stat|current|peak|events|events.local|numa_stat|pressure|forks)(\.local)?:'
	done 2>/dev/null
	find /etc/systemd/system /run/systemd/system /run/systemd/system.control /run/systemd/transient ! -type d 2>/dev/null |
		grep -v -e /rf- -e 'invocation:' | sort
}
# the layout goes first: as long as it is there, its units start after the daemon
undone() { # WHEN
	mv /etc/ringfence/layout.toml /var/tmp
	check "$1: what undo says" exits 0 ringfence undo 0
	systemctl daemon-reload
	state >/var/tmp/rf-after
	check "$1: all is as before" diff /var/tmp/rf-before /var/tmp/rf-after
	check "$1: all CPUs and nodes are its processes' again" is "$(places)" "$(cat /sys/devices/system/cpu/online) $(cat $node/online)"
	check "$1: the database answers" su postgres -c 'psql --tuples-only --command "select 1"'
}

echo "== boot $RF_BOOT, $db on $disk"
case $RF_BOOT in
1)
	printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/$neighbour
	systemctl daemon-reload
	systemctl enable --quiet --now $neighbour
	check "the package installs" installed packages/ringfence_*.deb
	su postgres -c "$programs/pgbench --quiet --initialize --scale 2 postgres" 2>/dev/null
	state >/var/tmp/rf-before
	layout >/etc/ringfence/layout.toml
	check "apply" exits 0 ringfence apply
	in_force "applied"
	undone "undo"
	mv /var/tmp/layout.toml /etc/ringfence
	check "apply again" exits 0 ringfence apply
	su postgres -c "$programs/pgbench --client 4 --jobs 2 --time 3600 postgres" >/tmp/pgbench.log 2>&1 &
	for round in 1 2 3 4 5 6 7 8 9 10; do
		systemctl daemon-reload
		in_force "reload $round"
		systemctl daemon-reexec
		in_force "reexec $round"
	done
	check "the load runs" pgrep -x pgbench
	su postgres -c "psql --tuples-only --command 'select sum(xact_commit) from pg_stat_database'"
	check "a restart warns of nothing" is "$(systemctl restart $db 2>&1)" ''
	in_force "restart"
	again
	;;
2)
	within 60 systemctl is-active $db
	in_force "reboot"
	undone "undo after a reboot"
	end
	;;
esac

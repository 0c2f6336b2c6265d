# What a layout in /etc/ringfence does at boot, in a virtual machine with systemd that boots four times: see
# scripts/test-packages. The service is Debian's PostgreSQL where that is installed.
. ./checks.sh
service=rf-db.service
for unit in /var/lib/postgresql/*/main; do
	[ ! -d "$unit" ] || service=postgresql@$(echo "$unit" | cut -d/ -f5)-main.service
done
cgroup() { systemctl show "$service" --value --property ControlGroup; }
ready() { systemctl show "$1" --value --property "$2"; }
booted() { has ' running degraded ' " $(systemctl is-system-running) "; }
again() { systemctl reboot && exit; }

layout() { # MORE
	cat >/etc/ringfence/layout.toml <<-END
		[groups.db]
		unit = "$service"
		memory.max = "300M"
		pids.max = 400
		[groups.batch]
		pids.max = 300
		[groups.rt]
		unit = "rt.slice"
		cpus = 1
		exclusive = true
		$1
	END
}

echo "== boot $RF_BOOT, $service"
case $RF_BOOT in
1)
	if [ $service = rf-db.service ]; then
		printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/$service
		systemctl daemon-reload
		systemctl enable --quiet --now $service
	fi
	check "the package installs" installed packages/ringfence_*.deb
	layout ''
	systemctl start rt.slice
	check "the service starts" systemctl start ringfenced
	check "all is as applied" exits 0 ringfence status
	check "the unit has its limit" is "$(cat "/sys/fs/cgroup$(cgroup)/memory.max")" $((300 << 20))
	again
	;;
2)
	check "the machine is up" booted
	check "nothing has failed" is "$(systemctl --failed --plain --no-legend)" ""
	check "all is as applied" exits 0 ringfence status
	check "the unit is ordered after the daemon" has "$(systemctl show "$service" --property After)" ringfenced.service
	check "and started after it was ready" test "$(ready ringfenced ActiveEnterTimestampMonotonic)" -le \
		"$(ready "$service" InactiveExitTimestampMonotonic)"
	check "the unit has its limit" is "$(cat "/sys/fs/cgroup$(cgroup)/memory.max")" $((300 << 20))
	check "the slice has CPUs of its own" is "$(cat /sys/fs/cgroup/rt.slice/cpuset.cpus.partition)" root
	check "our own group has its" is "$(cat /sys/fs/cgroup/ringfence.slice/ringfence.service/batch/pids.max)" 300
	# what can't be satisfied
	layout '[groups.x]
cpus = 999
'
	again
	;;
3)
	check "the machine is up" booted
	check "nothing has failed" is "$(systemctl --failed --plain --no-legend)" ""
	check "the service of the layout runs" is "$(systemctl is-active "$service")" active
	check "the daemon runs" is "$(systemctl is-active ringfenced)" active
	check "status needs attention" exits 3 ringfence status
	check "status says why" has "$(ringfence status 2>&1)" "the layout is not applied: /etc/ringfence has 1 error"
	check "so does the journal" has "$(journalctl --boot --unit ringfenced --no-pager)" "999 CPUs for 'x'"
	# what can't be read
	layout '[groups.x'
	again
	;;
4)
	check "the machine is up" booted
	check "the service of the layout runs" is "$(systemctl is-active "$service")" active
	check "the daemon has failed" not is "$(systemctl is-active ringfenced)" active
	check "nothing else has" is "$(systemctl --failed --plain --no-legend | grep -vc ringfenced)" 0
	check "status needs attention" exits 3 ringfence status
	check "status says why" has "$(ringfence status 2>&1)" "/etc/ringfence has errors: ringfence check"
	check "so does the journal" has "$(journalctl --boot --unit ringfenced --no-pager)" "the header's ']' is missing"
	layout ''
	systemctl start rt.slice # the layout could not be read at boot
	systemctl reset-failed ringfenced
	check "corrected, it starts" systemctl start ringfenced
	check "all is as applied" exits 0 ringfence status
	end
	;;
esac

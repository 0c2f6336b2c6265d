# What a layout in /etc/ringfence does at boot, and what of a unit's limit outlives one, in a virtual machine with systemd that
# boots six times: see scripts/test-packages. The service is Debian's PostgreSQL where that is installed.
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

drop_in=/etc/systemd/system/rf-early.service.d/90-ringfence.conf
early() { # LIMIT: of a unit that starts before the daemon
	printf '[groups.early]\nunit = "rf-early.service"\npids.max = %s\n' "$1"
}
limit() { cat /sys/fs/cgroup/system.slice/rf-early.service/pids.max; }
other() { [ -n "$1" ] && not is "$1" "$2"; } # one that is there
nothing_is_left() {
	check "its file is gone" not test -e $drop_in
	check "so is what was noted for the boot" not test -e /etc/systemd/system/.ringfence-before
	check "and what the boot made of that" not test -e /run/systemd/generator.early/rf-early.service.d
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
	# notes the limit that it starts with
	cat >/usr/local/sbin/rf-early <<-'END'
		#!/bin/sh
		cat "/sys/fs/cgroup$(sed -n s,^0::,,p /proc/self/cgroup)/pids.max" >/run/rf-early
		exec sleep infinity
	END
	chmod 755 /usr/local/sbin/rf-early
	printf '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/local/sbin/rf-early\n[Install]\nWantedBy=sysinit.target\n' \
		>/etc/systemd/system/rf-early.service
	systemctl daemon-reload
	systemctl enable --quiet --now rf-early
	{ cat /etc/ringfence/layout.toml && early 77; } >/root/early.toml
	check "a change that waits for its confirmation" ringfence apply --confirm 3000s /root/early.toml
	check "is in force" is "$(limit)" 77
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
	check "a unit that starts before the daemon has no limit that nobody confirmed" other "$(cat /run/rf-early)" 77
	check "nor has it one now" other "$(limit)" 77
	check "the history says why" has "$(ringfence history)" "not confirmed within 3000 s"
	nothing_is_left
	ringfence apply --confirm 3000s /root/early.toml
	check "one that is confirmed" ringfence confirm
	# what can't be satisfied
	layout '[groups.x]
cpus = 999
'
	again
	;;
3)
	check "the machine is up" booted
	check "nothing has failed" is "$(systemctl --failed --plain --no-legend)" ""
	check "holds from the start" is "$(cat /run/rf-early)" 77
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
	nothing_is_left
	# by hand from here on
	systemctl disable --quiet --now ringfenced
	early 77 >/root/one.toml
	check "a layout is applied without the daemon" ringfence apply /root/one.toml
	again
	;;
5)
	check "the machine is up" booted
	check "the limit holds from the start" is "$(cat /run/rf-early)" 77
	check "status shows it as applied" exits 0 ringfence status
	check "by its group" has "$(ringfence status)" early
	check "the history has it in effect" has "$(ringfence history | tail -n 1)" "*"
	check "an undo takes it back" exits 0 ringfence undo 0
	check "at once" other "$(limit)" 77
	nothing_is_left
	check "status says so" exits 0 ringfence status
	early 55 >/root/two.toml
	check "a change that waits for its confirmation" ringfence apply --confirm 3000s /root/two.toml
	check "is in force" is "$(limit)" 55
	again
	;;
6)
	check "the machine is up" booted
	check "the unit starts without it" other "$(cat /run/rf-early)" 55
	check "status needs attention" exits 3 ringfence status
	check "status says why" has "$(ringfence status 2>&1)" "not confirmed before the machine was booted"
	check "it is too late to confirm it" not ringfence confirm
	check "systemd reads its files again, and goes on without it" systemctl daemon-reload
	check "as its limit shows" other "$(limit)" 55
	check "an undo takes it back" exits 0 ringfence undo
	nothing_is_left
	check "and no limit is left" other "$(limit)" 55
	check "as status says" exits 0 ringfence status
	end
	;;
esac

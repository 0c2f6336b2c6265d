# What docs/fleet.md shows of other programs, and whether it holds.
group=/sys/fs/cgroup/ringfence.slice/ringfence.service/db
page=/usr/share/doc/ringfence/docs/fleet.md
half=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024 / 2))
# the block of the page that begins so
block() { # LANGUAGE FIRST-LINE
	awk -v "first=$2" -v "fence=\`\`\`$1" '
		$0 == fence { begins = 1; next }
		begins { shown = index($0, first) == 1; begins = 0 }
		$0 == "```" { shown = 0 }
		shown' $page
}
limited() { # by half of the memory, less the rounding to pages
	local now
	now=$(cat $group/memory.max) && [ "$now" != max ] && [ $((half - now)) -lt 8192 ] && [ $((now - half)) -lt 8192 ]
}
back() {
	systemctl stop ringfenced
	rm -rf /etc/ringfence/layout.d
	ringfence undo 0 >/dev/null
}

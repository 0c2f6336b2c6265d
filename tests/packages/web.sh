# `ringfence web` beside the packaged daemon in a virtual machine with systemd, for a browser on the machine that runs it, which comes
# by `ssh -L`: web/test/vm/vm.test.mjs. See scripts/test-packages.
. ./checks.sh
link=$(ls /sys/class/net | grep -v -m 1 '^lo$')
ip link set lo up
ip address add 10.0.2.15/24 dev "$link"
ip link set "$link" up
hostname db1
mkdir -p /run/sshd
for home in /root /home/rf; do
	mkdir -p $home/.ssh
	cp packages/key.pub $home/.ssh/authorized_keys
	chmod -R go= $home/.ssh
done
chown -R rf: /home/rf/.ssh
[ -e /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key

check "the package installs" installed packages/ringfence_*.deb
cat >/etc/ringfence/layout.toml <<-'END'
	# Two databases on a NUMA node each, a CPU for control, and what is left for the rest.
	[groups.db]
	memory.max = "75%"

	[groups.db.groups.oltp1]
	cpus = { node = 0 }
	mems = "local"
	memory.max = "400M"

	[groups.db.groups.oltp2]
	cpus = { node = 1 }
	mems = "local"
	memory.max = "400M"

	[groups.control]
	cpus = 1

	[groups.batch]
	cpu.max = "15%"
	memory.max = "200M"
	admin = { user = "rf" }
END
echo 'RINGFENCED_OPTIONS="--record"' >/etc/default/ringfenced
# emulated CPUs beside other work: a start that takes seconds elsewhere may take minutes
mkdir -p /etc/systemd/system/ringfenced.service.d
printf '[Service]\nTimeoutStartSec=900\nWatchdogSec=0\n' >/etc/systemd/system/ringfenced.service.d/slow.conf
systemctl daemon-reload
check "the daemon starts" systemctl restart ringfenced
check "all is as applied" exits 0 ringfence status
check "the groups are there" test -d /sys/fs/cgroup/ringfence.slice/ringfence.service/db/oltp1
# emulated CPUs share one: loads that rest most of the time, except for the one that its limit stops
load='while :; do i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; sleep 0.7; done'
for group in db/oltp1 db/oltp2 control; do
	ringfence run $group -- sh -c "$load" &
done
ringfence run batch -- sh -c 'while :; do :; done' &
systemctl restart ssh

touch /run/rf-ready
echo "== ready"
# the browser's side makes this file at its end
left=${RF_SECONDS:-1500}
while [ ! -e /run/rf-done ] && [ $left -gt 0 ]; do
	sleep 1
	left=$((left - 1))
done
check "the browser's side came to its end" test -e /run/rf-done
check "the daemon ran all the time" is "$(property NRestarts)" 0
check "all is as applied at the end" exits 0 ringfence status
reported() { journalctl --unit ringfenced --no-pager | grep "$1"; }
check "the daemon reported no drift" not reported drift
end

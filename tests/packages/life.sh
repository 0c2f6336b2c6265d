# The packages' whole life, in a virtual machine with systemd: see scripts/test-packages.
. ./checks.sh
first=$(ls packages/ringfence_*.deb) newer=$(ls packages/newer/ringfence_*.deb)
names=$(ls packages/ringfence-libcgroup_*.deb)
group=/ringfence.slice/ringfence.service/db

echo "== install"
check "it installs" installed "$first"
check "the service is enabled" is "$(systemctl is-enabled ringfenced)" enabled
check "it does not run without a layout" is "$(systemctl is-active ringfenced)" inactive
check "nothing has failed" is "$(systemctl --failed --plain --no-legend)" ""
check "the unit is right" is "$(systemd-analyze verify --man=no ringfenced.service 2>&1 | grep ringfence)" ""
for file in bin/ringfence sbin/ringfenced share/man/man1/ringfence-apply.1.gz share/man/man5/ringfence-layout.5.gz \
	share/bash-completion/completions/ringfence share/zsh/vendor-completions/_ringfence \
	share/fish/vendor_completions.d/ringfence.fish share/doc/ringfence/docs/start.md share/doc/ringfence/studies/aa.toml; do
	check "/usr/$file is there" test -s "/usr/$file"
done
check "the example layout is right" ringfence check /etc/ringfence/layout.toml.example
check "no layout is not a failure" exits 0 ringfence status

echo "== a layout"
cp "$(command -v sleep)" /usr/local/bin/rf-db
printf '[groups.db]\npids.max = 300\nmemory.max = "200M"\nmatch = [{ process = "/usr/local/bin/rf-db" }]\n' >/etc/ringfence/layout.toml
# of no unit: the processes of a service are systemd's
systemd-run --quiet --scope --unit=rf-db-scope /usr/local/bin/rf-db 3600 &
check "the service starts" systemctl start ringfenced
program=$(pidof rf-db)
check "the layout is as applied" within 20 exits 0 ringfence status
check "the limit is there" is "$(cat /sys/fs/cgroup$group/pids.max)" 300
check "a program is in its group" within 20 is "$(place "$program")" $group
exposure=$(systemd-analyze security --no-pager ringfenced | sed -n 's/.*exposure level for ringfenced.service: \([0-9.]*\).*/\1/p')
check "its exposure is $exposure, at most 4.0" awk "BEGIN { exit !($exposure > 0 && $exposure <= 4.0) }"

echo "== order at boot"
mkdir -p /etc/ringfence/layout.d
printf '[Service]\nExecStart=/bin/sleep 1\n' >/etc/systemd/system/rf-named.service
printf '[groups.x]\nunit = "rf-named.service"\n' >/etc/ringfence/layout.d/unit.toml
systemctl daemon-reload
check "a unit that the layout names is after the daemon" has "$(systemctl show rf-named --property After)" ringfenced.service
rm -r /etc/ringfence/layout.d /etc/systemd/system/rf-named.service
systemctl daemon-reload

echo "== a layout that can't be satisfied"
cp /etc/ringfence/layout.toml /tmp/good.toml
printf '[groups.x]\ncpus = 999\n' >>/etc/ringfence/layout.toml
check "the daemon runs all the same" systemctl restart ringfenced
check "status needs attention" exits 3 ringfence status
check "status says why" has "$(ringfence status 2>&1)" "the layout is not applied: /etc/ringfence has 1 error"
check "so does the journal" has "$(journalctl -u ringfenced --no-pager)" "needs 999 CPUs"
check "what was applied stays" is "$(cat /sys/fs/cgroup$group/pids.max)" 300
cp /tmp/good.toml /etc/ringfence/layout.toml
check "a good one is followed" systemctl reload ringfenced
check "and it is as applied" exits 0 ringfence status

echo "== upgrade"
before=$(property MainPID)
echo '# of this machine' >>/etc/default/ringfenced
check "it upgrades" installed "$newer"
check "the newer one is there" has "$(dpkg-query -W -f '${Version}' ringfence)" .1-1
check "another daemon runs" not is "$(property MainPID)" "$before"
check "and is active" is "$(systemctl is-active ringfenced)" active
check "configuration stays" grep -q 'of this machine' /etc/default/ringfenced
check "the program is the same in the same group" is "$(place "$program")" $group
check "all is as applied" exits 0 ringfence status

echo "== libcgroup's names"
mkdir -p /tmp/tools/DEBIAN /tmp/tools/usr/bin /tmp/user/DEBIAN
printf 'Package: cgroup-tools\nVersion: 2.0.2-2\nArchitecture: all\nMaintainer: x <x@example.invalid>\nDescription: x\n' >/tmp/tools/DEBIAN/control
printf 'Package: rf-user\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.invalid>\nDepends: cgroup-tools\nDescription: x\n' >/tmp/user/DEBIAN/control
echo of Debian >/tmp/tools/usr/bin/cgget
for name in tools user; do dpkg-deb --build /tmp/$name /tmp/$name.deb >/dev/null; done
check "Debian's are there first" installed /tmp/tools.deb /tmp/user.deb
check "ours take their place" installed "$names"
check "Debian's are gone" not has "$(dpkg-query -W -f '${Status}' cgroup-tools 2>/dev/null)" "ok installed"
check "what depends on them stays" has "$(dpkg-query -W -f '${Status}' rf-user)" "ok installed"
check "cgget reads a group" has "$(cgget -n -r pids.max db)" "pids.max: 300"
check "cgclear is in sbin" test -x /usr/sbin/cgclear
check "they have manual pages" test -s /usr/share/man/man1/cgset.1.gz -a -s /usr/share/man/man5/cgconfig.conf.5.gz -a -s /usr/share/man/man5/cgrules.conf.5.gz
dpkg -r rf-user ringfence-libcgroup >/dev/null 2>&1
check "they go" not test -e /usr/bin/cgget

echo "== without systemd"
systemctl stop ringfenced
init=/etc/init.d/ringfenced
# LSB's functions pass a call on to systemctl otherwise
export SYSTEMCTL_SKIP_REDIRECT=1
check "it does not run" exits 3 $init status
check "it starts" $init start
check "its start waits until it is ready" test -S /run/ringfence/ringfenced.sock
check "it runs" exits 0 $init status
check "a second start is none" has "$($init start)" "runs already"
check "it reloads" $init reload
pid=$(cat /run/ringfence/ringfenced.pid)
check "it restarts" $init restart
check "as another process" not is "$(cat /run/ringfence/ringfenced.pid)" "$pid"
pid=$(cat /run/ringfence/ringfenced.pid)
cp /etc/ringfence/layout.toml /tmp/layout.toml
echo '[groups.x' >/etc/ringfence/layout.toml
check "a restart is refused with a layout that can't be read" exits 1 $init restart
check "and the daemon goes on" is "$(cat /run/ringfence/ringfenced.pid)" "$pid"
check "as its status says" exits 0 $init status
mv /tmp/layout.toml /etc/ringfence/layout.toml
check "it stops" $init stop
check "and is gone" exits 3 $init status
check "the program is still in its group" is "$(place "$program")" $group
mv /etc/ringfence/layout.toml /tmp/layout.toml
check "it does not start without a layout" has "$($init start)" "there is no layout"
echo '[groups.x' >/etc/ringfence/layout.toml
check "it fails with a layout that can't be read" exits 1 $init start
check "and leaves no number behind" not test -e /run/ringfence/ringfenced.pid
check "which status says, with the group still in effect" exits 3 ringfence status
check "and names" has "$(ringfence status)" "/etc/ringfence has errors: ringfence check"
check "its log says why" grep -q "the header's ']' is missing" /var/log/ringfence/ringfenced.log
mv /tmp/layout.toml /etc/ringfence/layout.toml

echo "== remove, install again, purge"
systemctl start ringfenced
removed=$(dpkg -r ringfence 2>&1)
check "it is removed" not test -e /usr/bin/ringfence
check "the groups that stay are named, with the command" has "$removed" \
	"what it applied (1 group) stays until the next boot; to lift it now (not after a purge): apt install ringfence && ringfence undo 0"
check "in one line" is "$(echo "$removed" | grep -c '^ringfence: ')" 1
check "the program runs in its group" is "$(place "$program")" $group
check "with its limit" is "$(cat /sys/fs/cgroup$group/pids.max)" 300
check "no daemon runs" not pidof ringfenced
check "the layout stays" test -s /etc/ringfence/layout.toml
check "it installs again" installed "$newer"
check "and starts" is "$(systemctl is-active ringfenced)" active
check "all is as applied" exits 0 ringfence status
check "it is purged" dpkg -P ringfence
for path in /etc/ringfence /etc/default/ringfenced /etc/init.d/ringfenced /var/lib/ringfence /var/log/ringfence \
	/usr/share/doc/ringfence /etc/systemd/system/multi-user.target.wants/ringfenced.service; do
	check "$path is gone" not test -e $path
done
check "no unit is left" is "$(systemctl list-unit-files --no-legend 'ringfenced*')" ""
check "the program runs on" is "$(place "$program")" $group
check "nothing has failed" is "$(systemctl --failed --plain --no-legend)" ""

end

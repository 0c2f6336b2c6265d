# What docs/fleet.md says of Salt, as it stands there, without a master: in a virtual machine with systemd. See
# scripts/test-packages.
. ./checks.sh
. ./page.sh
export PYTHONPATH=/rf/salt LC_ALL=C.UTF-8
check "the package installs" installed packages/ringfence_*.deb
mkdir -p /srv/salt /etc/salt
block yaml ringfence: >/srv/salt/division.sls
state() { python3 /rf/salt/bin/salt-call --local --retcode-passthrough --log-level=error state.apply division; }

said=$(state)
check "the first run ends well" has "$said" "Failed:    0"
check "and changes the host" has "$said" "changed="
check "the daemon runs" is "$(systemctl is-active ringfenced)" active
check "the limit is there" within 20 limited
said=$(state)
check "the second run ends well" has "$said" "Failed:    0"
check "and changes nothing" not has "$said" "changed="
sed -i "s/50%/25%/" /srv/salt/division.sls
said=$(state)
check "a change is applied" has "$said" "changed="
check "by a reload" within 20 not limited

end

# The collection over ssh, from the package on: in a virtual machine with systemd, whose controller and host are the same
# machine. See scripts/test-packages.
. ./checks.sh
export HOME=/root ANSIBLE_COLLECTIONS_PATH=/tmp/collections ANSIBLE_NOCOLOR=1 ANSIBLE_PIPELINING=1 LC_ALL=C.UTF-8
export ANSIBLE_HOST_KEY_CHECKING=false
group=/sys/fs/cgroup/ringfence.slice/ringfence.service/db
mkdir -p /tmp/collections/ansible_collections/ringfence /root/.ssh /home/rf/.ssh /run/sshd
ln -s /rf/packages/collection /tmp/collections/ansible_collections/ringfence/host
ip link set lo up
ssh-keygen -A >/dev/null
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
for home in root home/rf; do
	cp /root/.ssh/id_ed25519.pub /$home/.ssh/authorized_keys
	chmod 700 /$home/.ssh
done
chown -R rf: /home/rf/.ssh
systemctl restart ssh
cat >/tmp/hosts <<'END'
[ringfence]
db1 ansible_host=127.0.0.1 ansible_connection=ssh ansible_user=root
END
cat >/tmp/site.yml <<END
- hosts: ringfence
  gather_facts: false
  roles:
    - role: ringfence.host.host
      vars:
        host_package_file: $PWD/$(ls packages/ringfence_*.deb)
        host_service_options: "--check 2"
        host_layouts:
          10-db: |
            [groups.db]
            memory.max = "{{ memory | default('100M') }}"
            pids.max = 50
END
play() { ansible-playbook -i /tmp/hosts "$@" 2>&1; }
image() { find /etc/ringfence /etc/default/ringfenced /var/lib/ringfence -type f -exec sha256sum {} + 2>/dev/null | sort; cat $group/memory.max $group/pids.max; }

echo "== the first run"
said=$(play /tmp/site.yml)
check "it ends well" has "$said" "failed=0"
check "it changes the host" not has "$said" "changed=0"
check "the package is there" test -x /usr/bin/ringfence
check "the limit is there" is "$(cat $group/memory.max)" $((100 << 20))
check "the file is there" grep -q 100M /etc/ringfence/layout.d/10-db.toml
check "the daemon runs" is "$(systemctl is-active ringfenced)" active
check "and at each boot" is "$(systemctl is-enabled ringfenced)" enabled
check "all is as applied" within 20 exits 0 ringfence status

echo "== the second run"
said=$(play /tmp/site.yml)
check "it changes nothing" has "$said" "changed=0"
check "and nothing fails" has "$said" "failed=0"

echo "== --check --diff"
before=$(image)
said=$(play /tmp/site.yml --check --diff -e memory=200M)
check "it shows the plan" has "$said" "+  memory.max  $((200 << 20))"
check "and what was there" has "$said" "-  memory.max  $((100 << 20))"
check "and the file" has "$said" '+memory.max = "200M"'
check "it touches nothing" is "$(image)" "$before"

echo "== drift"
echo 20 >$group/pids.max
said=$(play ringfence.host.drift -e drift_become=false -e host_drift_report=/tmp/drift.json)
check "the report names it" has "$said" "$group/pids.max: applied 50, now 20"
said=$(play /tmp/site.yml)
check "the next run repairs it" is "$(cat $group/pids.max)" 50

echo "== a change that is confirmed, beside the daemon"
said=$(play /tmp/site.yml -e memory=200M -e host_confirm=300s)
check "it is applied" is "$(cat $group/memory.max)" $((200 << 20))
check "the file is the old one" grep -q 100M /etc/ringfence/layout.d/10-db.toml
sleep 5
check "the daemon leaves it" is "$(cat $group/memory.max)" $((200 << 20))
printf -- '- hosts: ringfence\n  gather_facts: false\n  tasks:\n    - ringfence.host.layout: {state: confirmed}\n' >/tmp/confirm.yml
said=$(play /tmp/confirm.yml)
check "it is confirmed" has "$said" "changed=1"
check "the file is the new one" grep -q 200M /etc/ringfence/layout.d/10-db.toml
check "all is as applied" within 20 exits 0 ringfence status
check "the daemon has the new layout" systemctl restart ringfenced
check "after its restart, too" within 20 is "$(cat $group/memory.max)" $((200 << 20))

echo "== one that is not"
said=$(play /tmp/site.yml -e memory=300M -e host_confirm=20s)
check "it goes back by itself" within 60 grep -qx $((200 << 20)) $group/memory.max
check "all is as applied" within 20 exits 0 ringfence status

echo "== no right, no daemon"
said=$(play /tmp/site.yml -e memory=300M -e ansible_user=rf -e host_package_manage=false -e host_service_manage=false)
check "who is not root is named the way" has "$said" "become: true"
check "nothing is changed" is "$(cat $group/memory.max)" $((200 << 20))
printf -- '- hosts: ringfence\n  gather_facts: false\n  tasks:\n    - ringfence.host.layout: {name: 20-x, content: "[groups.x]\\npids.max = 9\\n", reload: always}\n' >/tmp/reload.yml
systemctl stop ringfenced
said=$(play /tmp/reload.yml)
check "a daemon that does not run is named" has "$said" "the daemon does not read them: ringfenced is not running"

end

# What docs/fleet.md says of Puppet, cloud-init and systemd-confext, as it stands there: in a virtual machine with systemd. See
# scripts/test-packages.
. ./checks.sh
. ./page.sh
check "the package installs" installed packages/ringfence_*.deb

echo "== Puppet"
block puppet "package { 'ringfence'" >/tmp/site.pp
export PATH=$PATH:/opt/puppetlabs/bin LC_ALL=C.UTF-8
check "the first run changes the host" exits 2 puppet apply --detailed-exitcodes /tmp/site.pp
check "the daemon runs" is "$(systemctl is-active ringfenced)" active
check "the limit is there" within 20 limited
check "the second run changes nothing" exits 0 puppet apply --detailed-exitcodes /tmp/site.pp
sed -i "s/50%/25%/" /tmp/site.pp
check "a change is applied" exits 2 puppet apply --detailed-exitcodes /tmp/site.pp
check "by a reload" within 20 not limited
back

echo "== cloud-init"
block yaml '#cloud-config' >/tmp/user-data
check "it is right" cloud-init schema --config-file /tmp/user-data
# a first boot with it, as far as files go
mkdir -p /var/lib/cloud/seed/nocloud
cp /tmp/user-data /var/lib/cloud/seed/nocloud/user-data
echo 'instance-id: rf' >/var/lib/cloud/seed/nocloud/meta-data
printf 'datasource_list: [NoCloud]\nnetwork: {config: disabled}\n' >/etc/cloud/cloud.cfg.d/99-rf.cfg
check "it finds its data" cloud-init init --local
check "it writes the file" cloud-init single --name write_files --frequency always --file /tmp/user-data
check "the layout is right" ringfence check /etc/ringfence
check "the service applies it" systemctl start ringfenced
check "the limit is there" within 20 limited
back

echo "== systemd-confext"
block sh 'mkdir -p /var/lib/confexts' >/tmp/confext.sh
check "overlay is there (else renew kernel-13 of the cache)" grep -qw overlay /proc/filesystems
check "it is merged" sh -e /tmp/confext.sh
check "the file is there" grep -q 50% /etc/ringfence/layout.d/10-db.toml
check "the limit is there" within 20 limited

end

# Checks in a virtual machine: a line each. The number of failures outlives a reboot.
failures=/var/tmp/rf-failures
export DEBIAN_FRONTEND=noninteractive
check() { # NAME COMMAND…
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "ok     $name"
	else
		echo "$name" >>$failures
		printf 'FAILED %s: %s\n%s\n' "$name" "$*" "$said"
	fi
}
not() { ! "$@"; }
is() { [ "$1" = "$2" ] || { echo "'$1', not '$2'" && return 1; }; }
has() { case $1 in *"$2"*) ;; *) echo "no '$2' in: $1" && return 1 ;; esac; }
property() { systemctl show ringfenced --value --property "$1"; }
place() { sed -n 's,^0::,,p' "/proc/$1/cgroup"; }
exits() { # STATUS COMMAND…
	local status=0 wanted=$1 said
	shift
	said=$("$@" 2>&1) || status=$?
	is "$status" "$wanted" || { echo "$said" && return 1; }
}
installed() { dpkg -i "$@" >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log && return 1; }; }
within() { # SECONDS COMMAND…
	local tries=$1
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { "$@" && return 1; }
		sleep 1
	done
}
end() {
	[ ! -s $failures ] || { echo "$(wc -l <$failures) failed" && exit 1; }
	echo "all passed"
}

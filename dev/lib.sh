# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dev/lib.sh: what the scripts of dev/ share; sourced by them.
# Not for the user's shell: that is dev/env.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
logs=$build/logs
mkdir -p "$logs"
jobs=$(nproc 2>/dev/null || echo 1)
me=dev/${0##*/}

say() { printf '%s: %s\n' "$me" "$*"; }
die() { printf '%s: %s\n' "$me" "$*" >&2; exit 1; }

# ---- packages

probe_one() {
	case $1 in
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

probe_all() {	# probe_all PROBE,PROBE,...
	local probe
	for probe in ${1//,/ }; do
		probe_one "$probe" || return 1
	done
}

# The packages of these groups that are not there, one a line: "PACKAGE what for".
missing_packages() {	# missing_packages GROUP...
	local group package probes purpose
	while read -r group package probes purpose; do
		[[ $group == '#'* || -z $group ]] && continue
		[[ " $* " == *" $group "* ]] || continue
		probe_all "$probes" || echo "$package $purpose"
	done <"$root/dev/packages"
}

# Sets as_root to the words before a command that needs root, or fails.
find_root() {
	as_root=()
	[ "$(id -u)" -eq 0 ] && return
	command -v sudo >/dev/null 2>&1 || return 1
	as_root=(sudo)
	# Without a terminal nobody can type a password.
	[ -t 0 ] || as_root=(sudo -n)
	"${as_root[@]}" true 2>/dev/null
}

# Installs what is missing of these groups. Fails, after naming it, if it cannot.
install_packages() {	# install_packages GROUP...
	local list names
	list=$(missing_packages "$@")
	[ -n "$list" ] || return 0
	mapfile -t names < <(cut -d' ' -f1 <<<"$list")
	if ! command -v apt-get >/dev/null 2>&1; then
		say "missing, and this is no Debian or Ubuntu: ${names[*]}"
		return 1
	elif ! find_root; then
		say "missing, and neither root nor sudo to install it with:"
		say "    apt-get install ${names[*]}"
		return 1
	fi
	say "installing ${names[*]}"
	apt_quietly update && apt_quietly install --no-install-recommends "${names[@]}" && return
	say "apt-get could not install: ${names[*]}"
	return 1
}

apt_quietly() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		-o Dpkg::Use-Pty=0 "$@" </dev/null >"$logs/apt.log" 2>&1 && return
	tail -n 15 "$logs/apt.log" >&2
	return 1
}

# ---- Debian's packages and sources, without touching those of this machine

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Where this machine gets Debian from; the standard place if that is not told.
mirror() {
	local uri
	# shellcheck disable=SC2016 # apt's own variable
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		grep -m1 -E '/debian/?$') || true
	echo "${uri:-http://deb.debian.org/debian}"
}

# An apt of its own: proxies and the like are the machine's, all else is in here.
# The machine's other settings are left out, since some run commands after an update. Its lists are fetched; APT_CONFIG is set.
own_apt() {	# own_apt DIR deb|deb-src SUITE
	local apt=$1
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	echo "$2 [signed-by=$keyring] $(mirror) $3 main" >"$apt/sources.list"
	{
		apt-config dump | grep '^Acquire::' |
			grep -vE '^Acquire::(IndexTargets|CompressionTypes|Changelogs|Languages|Allow)' || true
		cat <<-EOT
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
		Dir::Log "$apt";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::main "/dev/null";
		Dir::Etc::parts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		APT::Sandbox::User "$(id -un)";
		APT::Install-Recommends "false";
		Acquire::Languages "none";
		EOT
	} >"$apt/apt.conf"
	export APT_CONFIG=$apt/apt.conf
	apt-get -q update -o APT::Update::Error-Mode=any
}

# ---- building

# configure and libtool start some hundred shells for each program: a third of a build's time where that shell is bash.
[ ! -x /bin/dash ] || export CONFIG_SHELL=${CONFIG_SHELL:-/bin/dash}

# ./configure and what it needs, unless they are there.
ensure_configure() {
	local made
	for made in configure Makefile.in build-aux/ltmain.sh build-aux/tap-driver.sh; do
		[ -e "$root/$made" ] && continue
		say "bootstrap"
		(cd "$root" && ./bootstrap) >"$logs/bootstrap.log" 2>&1 && return
		tail -n 20 "$logs/bootstrap.log" >&2
		die "bootstrap failed"
	done
}

# Configures DIR, unless it already is with these very options; none given means any.
ensure_configured() {	# ensure_configured DIR [OPTION...]
	local dir=$1 asked
	shift
	asked=$(printf '%s\n' "$@")
	if [ -e "$dir/Makefile" ]; then
		[ $# -eq 0 ] && return
		[ "$asked" = "$(cat "$dir/.asked" 2>/dev/null)" ] && return
	fi
	mkdir -p "$dir"
	say "configure ${dir#"$root/"}${1:+ with $*}"
	(cd "$dir" && "$root/configure" "$@") >"$dir/configure.log" 2>&1 || {
		sed -n '/error:/,$p' "$dir/configure.log" >&2
		die "configure failed; all of it: $dir/configure.log"
	}
	printf '%s\n' "$asked" >"$dir/.asked"
}

# make TARGET... in DIR; its lines go to a log, which is shown if it fails.
make_in() {	# make_in DIR [TARGET...]
	local dir=$1 log=$1/make.log
	shift
	if ! make -C "$dir" -j"$jobs" "$@" >"$log" 2>&1; then
		grep -v '^make' "$log" | tail -n 40 >&2
		echo "make failed; all of it: $log" >&2
		return 1
	fi
}

# setup.sh - sourced by tests/run and examples/run: the packages to install, and the build.
# Debian 12, Ubuntu 24.04 and later. Changes nothing outside apt and the checkout's build/ folder.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

packages_build="gcc g++ make pkg-config meson ninja-build libdw-dev libelf-dev libzstd-dev
	libjansson-dev libpcre2-dev libiberty-dev zlib1g-dev liblzma-dev libbz2-dev libsqlite3-dev
	libcurl4-openssl-dev libmicrohttpd-dev libncurses-dev python3 python3-venv"
packages_tests="$packages_build binutils clang libcmocka-dev libunwind-dev python3-pytest
	python3-jsonschema python3-prometheus-client python3-pyte
	gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
	libjemalloc-dev libgoogle-perftools-dev libmimalloc-dev redis-server redis-tools nodejs
	nginx-light gunicorn python3-uvicorn stress-ng valgrind musl-tools libjemalloc2
	libtcmalloc-minimal4 python3-dev mandoc procps gdb util-linux mount e2fsprogs time xz-utils
	zstd debian-archive-keyring
	python3-yaml
	bubblewrap qemu-system-x86 busybox-static cpio chromium chromium-driver python3-selenium"
packages_export="golang-go prometheus chromium chromium-driver python3-selenium"
# Spark 4 wants Java 17 or newer: Debian 12, Ubuntu 24.04.
packages_spark="default-jre-headless"
packages_release="debhelper lintian mmdebstrap systemd"
packages_bench="heaptrack cmake clang valgrind zstd python3-numpy libjemalloc2 libgoogle-perftools4"
# Only for tests/harm/all.
packages_harm="postgresql default-jdk-headless ffmpeg golang-go
	rustc python3-numpy python3-torch
	ruby php-cli r-base-core erlang-base guile-3.0 sbcl lua5.4 chromium firefox-esr
	octave maxima gawk swi-prolog-nox tcl ocaml-nox ghc mono-runtime mono-mcs emacs-nox vim
	ghostscript imagemagick graphicsmagick gnuplot-nox pandoc texlive-latex-base
	texlive-latex-recommended texlive-binaries libreoffice-writer-nogui
	mariadb-server-core mariadb-client-core slapd ldap-utils memcached mosquitto
	mosquitto-clients
	haproxy varnish squid apache2 php-fpm uwsgi-core uwsgi-plugin-python3
	rsync curl gdb openssl gnupg tmux bubblewrap"

# CPython's own tests, in a package named by version; empty if the version is unknown.
packages_python() {
	local v

	v=$(dpkg-query -W -f='${Version}' python3 2>/dev/null) ||
		v=$(apt-cache show --no-all-versions python3 2>/dev/null | sed -n 's/^Version: //p')
	[[ $v =~ ^([0-9]+\.[0-9]+) ]] && echo "libpython${BASH_REMATCH[1]}-testsuite"
	return 0
}

# clang's sanitizers and libFuzzer, in a package named by version; likewise.
packages_clang() {
	local v

	v=$(dpkg-query -W -f='${Depends}' clang 2>/dev/null) ||
		v=$(apt-cache show --no-all-versions clang 2>/dev/null | sed -n 's/^Depends: //p')
	[[ $v =~ clang-([0-9]+) ]] && echo "libclang-rt-${BASH_REMATCH[1]}-dev"
	return 0
}

say() {
	printf '%s\n' "$*" >&2
}

# Installs the missing ones of the named packages. Without root or sudo it names them and stops.
need_packages() {
	local missing=() p as_root=()

	command -v dpkg-query >/dev/null || {
		say "this set-up knows Debian and Ubuntu only; needed are the packages: $*"
		exit 1
	}
	for p in "$@"; do
		dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null |
			grep -q '^ii' || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return
	if [ "$(id -u)" != 0 ]; then
		if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
			as_root=(sudo)
		else
			say "these packages are missing; to install them needs root or sudo:"
			say "  apt-get install ${missing[*]}"
			exit 1
		fi
	fi
	say "installing ${#missing[@]} packages: ${missing[*]}"
	"${as_root[@]}" apt-get -qq update >&2
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
		install -y --no-install-recommends "${missing[@]}" >&2 || {
		say "apt-get could not install: ${missing[*]}"
		exit 1
	}
}

# build NAME [MESON-OPTION...]: configures (once) and builds into build/NAME; reports on stderr.
build() {
	local name=$1 dir=$top/build/$1
	shift
	if [ ! -f "$dir/build.ninja" ]; then
		say "configuring build/$name"
		meson setup "$dir" "$top" "$@" >"$top/build/$name.setup.log" 2>&1 || {
			cat "$top/build/$name.setup.log" >&2
			say "meson could not configure build/$name"
			exit 1
		}
	fi
	say "building build/$name"
	ninja -C "$dir" >"$top/build/$name.log" 2>&1 || {
		tail -40 "$top/build/$name.log" >&2
		say "the build of build/$name failed; the whole log is build/$name.log"
		exit 1
	}
}

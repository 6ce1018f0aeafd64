# lib.sh - sourced by the examples' run scripts: whyoom, an environment with what the example needs,
# and a program under a limit with its report. Everything goes into the checkout's build/ folder.
#
# What is there already is not made: WHYOOM_EXE (whyoom in its build directory),
# WHYOOM_EXAMPLE_PYTHON (an interpreter that has the packages), WHYOOM_EXAMPLE_DIR (for the traces).
. "$(dirname "${BASH_SOURCE[0]}")/../tests/lib/setup.sh"

# example NAME: sets here, traces, whyoom and python.
example() {
	here=$top/examples/$1
	whyoom=${WHYOOM_EXE:-}
	python=${WHYOOM_EXAMPLE_PYTHON:-}
	traces=${WHYOOM_EXAMPLE_DIR:-$top/build/examples/$1}
	mkdir -p "$top/build" "$traces"
	[ -n "$whyoom" ] && [ -n "$python" ] || need_packages $packages_build
	if [ -z "$whyoom" ]; then
		build whyoom -Dtests=false
		whyoom=$top/build/whyoom/analyzer/cmd/whyoom
	fi
	[ -n "$python" ] || example_environment "$1"
	export PYTHONDONTWRITEBYTECODE=1
	# Nothing leaves this machine.
	unset LANGSMITH_TRACING LANGCHAIN_TRACING_V2
	# An extension in Rust that is refused memory hangs when it is to print a backtrace.
	unset RUST_BACKTRACE
	export OTEL_SDK_DISABLED=true CREWAI_DISABLE_TELEMETRY=true CREWAI_TRACING_ENABLED=false
}

# An environment of its own, named by what is in it.
example_environment() {
	local base venv

	base=$(command -v /usr/bin/python3 || command -v python3)
	venv=$({ "$base" -V && cat "$here/requirements.txt"; } | sha256sum | cut -c1-12)
	venv=$top/build/venv-$1-$venv
	python=$venv/bin/python
	[ -f "$venv/ready" ] && return
	say "installing what $1 needs into build/${venv##*/}"
	rm -rf "$venv"
	"$base" -m venv "$venv"
	"$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
	touch "$venv/ready"
}

# watch TRACE MIB PROGRAM [ARGUMENT...]: runs a program of the example with so much address space,
# which works without a container and without rights; its exit status is shown, not passed on.
watch() {
	local trace=$1 kib=$(($2 * 1024)) program=$3 status=0
	shift 3

	say ""
	say "\$ ulimit -v $kib; whyoom run -o $trace -- python $program $*"
	(
		ulimit -v "$kib"
		exec "$whyoom" run -o "$traces/$trace" -- "$python" "$here/$program" "$@"
	) || status=$?
	say "(exit status $status)"
	say ""
	say "\$ whyoom report $trace"
	"$whyoom" report "$traces/$trace"
}

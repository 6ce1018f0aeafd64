"""situations.py - how a process and its cgroup run out of memory, and what whyoom must say.

Each is a script that runs in the machine, in bash, with functions of LIBRARY, and the label. Each
was described before its first run. `few` are in the default tests."""
import dataclasses

MIB = 1 << 20
LIBRARY = r"""
top=/sys/fs/cgroup
echo "+memory +pids +cpu" >$top/cgroup.subtree_control 2>/dev/null

# group NAME SETTING=VALUE...: makes the group; its parents pass the controllers on.
group() {
	local name=$1 s; shift
	mkdir -p $top/$name
	[[ $name == */* ]] && echo "+memory" >$top/${name%/*}/cgroup.subtree_control
	echo 0 >$top/$name/memory.swap.max
	for s in "$@"; do echo "${s#*=}" >$top/$name/${s%%=*}; done
}

# recorded GROUP COMMAND...: under whyoom run, in the group, for at most $seconds.
recorded() {
	local g=$1; shift
	(echo $BASHPID >$top/$g/cgroup.procs; exec $whyoom run -o $out/trace -- "$@") \
		>$out/stdout 2>$out/stderr &
	local pid=$! n=0
	while kill -0 $pid 2>/dev/null && [ $n -lt $((${seconds:-60} * 5)) ]; do
		sleep 0.2; n=$((n + 1))
	done
	kill -TERM $pid 2>/dev/null
	wait $pid
	echo $? >$out/status
	cat $top/$g/memory.events >$out/events 2>/dev/null
}

# signs: what whyoom watch says of early signs, ten seconds after the start.
signs() {
	(sleep 10; $whyoom watch --once --textfile $out/signs $out/trace >$out/watch 2>&1) &
}

# beside GROUP COMMAND...: unrecorded, spared by the OOM killer, until the situation ends.
beside() {
	local g=$1; shift
	(echo $BASHPID >$top/$g/cgroup.procs; echo -1000 >/proc/self/oom_score_adj; exec "$@") &
	others+=($!)
	sleep 2
}

ended() {
	local p
	for p in "${others[@]}"; do kill -KILL $p; done 2>/dev/null
	others=()
	rm -rf /dev/shm/*
}
"""


@dataclasses.dataclass
class Situation:
    """What happens, and the label: what the report must say."""
    name: str
    script: str
    cause: tuple = ("leak",)
    blame: tuple = ("make_entry", "remember", "leak")
    limit: tuple = ()  # kind, bytes of the first ledger
    rows: dict = dataclasses.field(default_factory=dict)  # row: least, most bytes
    unaccounted: float = 0.10  # of the limit, at most
    sentence: tuple = ()  # words that the summary has
    never: tuple = ()  # words that no part of text or stderr has
    stderr: tuple = ()
    memory: int = 2048  # MiB of the machine
    signs: bool = False  # whyoom watch has seen tasks wait for memory, and memory.high
    few: bool = False


SLOW_LEAK = "$hog leak 65536 0 500"
SITUATIONS = [
    Situation("memory.max", "group a memory.max=100M\nrecorded a " + SLOW_LEAK, few=True,
              limit=("cgroup memory.max", 100 * MIB), stderr=("leak",)),
    Situation("memory.max, Python", "group a memory.max=100M\nrecorded a python3 -c '\n"
              "kept = []\ndef keep(i):\n    kept.append(\"%d\" % i * 9000)\n"
              "i = 0\nwhile True:\n    keep(i)\n    i += 1\n'",
              blame=("keep",), limit=("cgroup memory.max", 100 * MIB)),
    Situation("memory.oom.group", "group a memory.max=100M memory.oom.group=1\n"
              "recorded a " + SLOW_LEAK, limit=("cgroup memory.max", 100 * MIB),
              stderr=("leak",)),  # the supervisor spares itself
    Situation("lowered", "group a memory.max=400M\n"
              "(until [ $(cat $top/a/memory.current) -gt 20000000 ]; do sleep 0.05; done\n"
              "echo 40M >$top/a/memory.max) &\n"
              "recorded a $hog leak 65536 0 5000", limit=("cgroup memory.max", 40 * MIB)),
    Situation("joins later", "group a memory.max=80M\ngroup b\n"
              "recorded b sh -c 'echo $$ >/sys/fs/cgroup/a/cgroup.procs; exec \"$@\"' sh "
              + SLOW_LEAK, limit=("cgroup memory.max", 80 * MIB)),
    Situation("three workers", "group a memory.max=100M\nrecorded a $hog workers 65536",
              limit=("cgroup memory.max", 100 * MIB), stderr=("leak",)),
    Situation("memory.high", "group a memory.high=60M memory.max=100M\nseconds=20\nsigns\n"
              "recorded a " + SLOW_LEAK, few=True, signs=True,
              limit=("cgroup memory.high", 60 * MIB), sentence=("memory.high",),
              never=("healthy",)),
    Situation("memory.high, well below", "group a memory.high=200M memory.max=300M\n"
              "recorded a $hog serve 1000000 3000 500", cause=("healthy",), blame=()),
    Situation("swap", "swap_on\ngroup a memory.max=60M memory.swap.max=40M\n"
              "recorded a " + SLOW_LEAK + "\nswap_off", limit=("cgroup memory.max", 100 * MIB),
              rows={"swap": (25 * MIB, 41 * MIB)}, sentence=("swap",)),
    Situation("swap without a limit", "swap_on\n"
              "group a memory.max=60M memory.swap.max=max\n"
              "recorded a $hog leak 65536 3000 100\nswap_off", cause=("healthy",), blame=(),
              never=(" 0 B stayed free",)),
    Situation("limit above, neighbour's group", "group a memory.max=100M\ngroup a/hog\n"
              "group a/app\nbeside a/hog $hog hold 62914560 1000\nrecorded a/app " + SLOW_LEAK,
              cause=("external", "leak"), blame=(), limit=("cgroup memory.max", 100 * MIB),
              rows={"other processes": (55 * MIB, 68 * MIB)}),
    Situation("limit above, alone", "group a memory.max=80M\ngroup a/app memory.max=300M\n"
              "recorded a/app " + SLOW_LEAK, limit=("cgroup memory.max", 80 * MIB),
              rows={"other processes": (0, 6 * MIB)}),
    Situation("own file in memory", "group a memory.max=60M\n"
              "recorded a env FILE=/dev/shm/spool $hog file 65536 0 0", blame=(),
              limit=("cgroup memory.max", 60 * MIB), cause=("leak", "unknown"),
              never=("Others hold", "nvidia-smi")),
    Situation("page cache", "group a memory.max=60M\n"
              "recorded a env FILE=$out/big $hog file 1048576 300 0; rm -f $out/big",
              cause=("healthy",), blame=(), never=(" 0 B stayed free",), few=True),
    Situation("tiny limit", "group a memory.max=6M\nrecorded a $hog leak 16384 0 2000",
              limit=("cgroup memory.max", 6 * MIB), rows={"other processes": (0, 2 * MIB)},
              unaccounted=0.25),
    Situation("near the limit for long", "group a memory.max=60M\nseconds=100\n"
              "recorded a $hog leak 16384 0 4000", limit=("cgroup memory.max", 60 * MIB)),
    Situation("the machine's memory", "group a\nrecorded a $hog leak 262144 0 200", memory=768,
              limit=("system memory", None), stderr=("leak",)),
    Situation("strict overcommit", "old=$(cat /proc/sys/vm/overcommit_memory)\n"
              "echo 2 >/proc/sys/vm/overcommit_memory; echo 20 >/proc/sys/vm/overcommit_ratio\n"
              "group a\nrecorded a $hog leak 262144 0 100\n"
              "echo $old >/proc/sys/vm/overcommit_memory",
              limit=("CommitLimit (vm.overcommit_memory=2)", None), sentence=("CommitLimit",)),
    Situation("healthy", "group a memory.max=100M\nrecorded a $hog serve 4000000 2000 500",
              cause=("healthy",), blame=()),
    Situation("killed by hand", "group a memory.max=400M\n"
              "(sleep 6; pkill -KILL -x hog) &\nrecorded a $hog serve 1000000 100000 2000",
              cause=("healthy", "unknown"), blame=(), never=("leak",)),
]

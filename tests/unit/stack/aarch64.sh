#!/bin/sh
# The comparison of stacks on aarch64: built by a cross compiler, run by qemu-aarch64, with libgcc's
# unwinder as the reference; with and without signed return addresses.
#   aarch64.sh SOURCE_ROOT SCRATCH_DIR
set -e
root=$1 out=$2
for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64; do
	if ! command -v $tool >/dev/null; then
		echo "$tool is not installed: stacks on aarch64 not tested"
		exit 77
	fi
done
mkdir -p "$out"
here=$root/tests/unit/stack
sources=
for f in base/bootstrap_arena base/lockfree_map base/sys loaded/loader loaded/symbols loaded/visit \
	stack/cfi_cache stack/dwarf_expr stack/eh_frame stack/modules stack/readable stack/stack \
	stack/stack_ids \
	stack/unwind stack/unwind_full stack/unwind_system; do
	sources="$sources $root/shim/$f.c"
done
for protection in none standard; do
	args="-O2 -g -fPIC -mbranch-protection=$protection"
	# shellcheck disable=SC2086
	aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE $args -fno-omit-frame-pointer \
		-fvisibility=hidden -fexceptions -I"$root/include" -I"$root/shim" -shared \
		-o "$out/libunder.so" "$here/under.c" $sources -ldl -lpthread
	aarch64-linux-gnu-gcc $args -shared -o "$out/libagree_lazy.so" "$here/agree_lazy.c"
	for v in 1 2; do
		aarch64-linux-gnu-g++ $args -DVARIANT=$v -shared -o "$out/libagree$v.so" \
			"$here/agree_lib.cc"
	done
	aarch64-linux-gnu-g++ -std=gnu++17 $args -fomit-frame-pointer -rdynamic -Wl,-z,lazy \
		-o "$out/agree" "$here/agree.cc" "$here/agree_main.cc" \
		-L"$out" -lunder -lagree_lazy -ldl -lpthread
	qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$out" \
		"$out/agree" -n 2000 -t 2 -l "$out"
done

#!/bin/sh
# tarball.sh SOURCE BUILD VERSION - make BUILD/whyoom-VERSION-ARCH.tar.xz, which runs wherever it is
# unpacked: whyoom, linked statically, its libraries, man pages and documents. Builds in
# BUILD/tarball; the same sources give the same bytes.
set -eu
source=$1 build=$2 version=$3
arch=$(uname -m)
name=whyoom-$version-$arch
inner=$build/tarball
stage=$build/tarball-stage

umask 022
if [ ! -f "$inner/build.ninja" ]; then
	meson setup "$inner" "$source" --buildtype=release -Dtests=false -Dstatic=true \
		-Dprefer_static=true >"$build/tarball.log" 2>&1 || {
		cat "$build/tarball.log" >&2
		exit 1
	}
fi
ninja -C "$inner" >"$build/tarball.log" 2>&1 || {
	tail -40 "$build/tarball.log" >&2
	exit 1
}
rm -rf "$stage"
mkdir -p "$stage/$name/bin" "$stage/$name/lib/simgpu" "$stage/$name/share/man/man1" \
	"$stage/$name/share/doc/whyoom/docs" "$stage/$name/share/whyoom/knowledge"
strip -o "$stage/$name/bin/whyoom" "$inner/analyzer/cmd/whyoom"
# Keep the debug information: shim/meson.build says why.
strip --strip-unneeded --keep-section='.debug_*' -o "$stage/$name/lib/libwhyoom.so" \
	"$inner/shim/libwhyoom.so"
strip --strip-unneeded -o "$stage/$name/lib/libwhyoom-nvtx.so" "$inner/shim/libwhyoom-nvtx.so"
strip --strip-unneeded -o "$stage/$name/lib/simgpu/libwhyoom-simgpu.so" \
	"$inner/shim/simgpu/libwhyoom-simgpu.so"
strip -o "$stage/$name/lib/whyoom-nvml" "$inner/analyzer/cmd/whyoom-nvml"
strip -o "$stage/$name/lib/whyoom-player" "$inner/analyzer/replay/whyoom-player"
strip -o "$stage/$name/lib/whyoom-device-player" "$inner/analyzer/replay/whyoom-device-player"
cp "$source/analyzer/replay/through_torch.py" "$stage/$name/share/whyoom/"
cp "$source"/analyzer/man/*.1 "$inner"/analyzer/man/*.1 "$stage/$name/share/man/man1/"
cp "$inner"/analyzer/report/*-schema.json "$stage/$name/share/whyoom/"
cp "$source"/packaging/prometheus/whyoom.rules.yml "$source"/packaging/grafana/whyoom.json \
	"$stage/$name/share/whyoom/"
cp "$source"/analyzer/knowledge/data/*.know "$stage/$name/share/whyoom/knowledge/"
cp "$source/README.md" "$source/LICENSE" "$source/NEWS" "$stage/$name/share/doc/whyoom/"
cp "$source"/docs/*.md "$stage/$name/share/doc/whyoom/docs/"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner \
	--mtime="@${SOURCE_DATE_EPOCH:-1767225600}" -cJf "$build/$name.tar.xz" "$name"
rm -rf "$stage"
echo "$build/$name.tar.xz"

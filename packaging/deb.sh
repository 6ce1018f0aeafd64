#!/bin/sh
# deb.sh TARBALL OUT VERSION - make OUT/whyoom_VERSION_ARCH.deb by debhelper from the tarball, so
# that both hold the same programs. The same tarball and SOURCE_DATE_EPOCH give the same bytes.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
tarball=$(realpath "$1") out=$(realpath "$2") version=$3
: "${SOURCE_DATE_EPOCH:=1767225600}" # as of the tarball
export SOURCE_DATE_EPOCH
stage=$out/deb.stage

umask 022
rm -rf "$stage"
mkdir -p "$stage/whyoom"
trap 'rm -rf "$stage"' EXIT
tar -xf "$tarball" -C "$stage/whyoom" --strip-components=1 --no-same-owner
cp -R "$source/packaging/debian" "$stage/whyoom/debian"
cat >"$stage/whyoom/debian/changelog" <<END
whyoom ($version) unstable; urgency=medium

  * share/doc/whyoom/NEWS says what is new.

 -- The whyoom maintainers <maintainers@users.noreply.github.com>  $(date -uR -d "@$SOURCE_DATE_EPOCH")
END
(cd "$stage/whyoom" && dpkg-buildpackage -us -uc -b -d) >"$stage/log" 2>&1 || {
	tail -40 "$stage/log" >&2
	exit 1
}
mv "$stage/whyoom_${version}"_*.deb "$out/"
ls "$out/whyoom_${version}"_*.deb

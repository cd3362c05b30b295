#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the image of contrib/containers/Dockerfile and runs it, without a registry: debian:12 is made by debootstrap.
#
#     tests/containers.sh [DIR]      needs root, buildah, debootstrap and 6 GB; DIR (a temporary one) is removed at the end
#
# Not in make test: it downloads Debian twice over and compiles everything, a quarter of an hour on two busy cores.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$(mktemp -d)}
image=localhost/fathom

need()
{
    command -v "$1" >/dev/null || { echo "containers.sh: there is no $1 (apt install $1)" >&2; exit 77; }
}
[ "$(id -u)" -eq 0 ] || { echo "containers.sh: must be root" >&2; exit 77; }
need buildah
need debootstrap
mkdir -p "$dir"
trap 'rm -rf "$dir"' EXIT

# Copies in place of overlays and a chroot in place of namespaces: this works inside a container, too.
build_tool()
{
    what=$1
    shift
    buildah --storage-driver vfs --root "$dir/storage" --runroot "$dir/run" "$what" "$@"
}

make_base()
{
    debootstrap --variant=minbase bookworm "$dir/base" http://deb.debian.org/debian >"$dir/debootstrap.log"
    c=$(build_tool from scratch)
    build_tool copy -q "$c" "$dir/base" / >/dev/null
    build_tool commit -q "$c" docker.io/library/debian:12 >/dev/null
    build_tool rm "$c" >/dev/null
    rm -rf "$dir/base"
}

in_image() # in_image COMMAND...
{
    build_tool run --isolation chroot "$container" -- "$@"
}

make_base
build_tool bud --isolation chroot --pull-never -f "$root/contrib/containers/Dockerfile" -t "$image" "$root"
container=$(build_tool from --pull-never "$image")
in_image fathom --version
[ "$(in_image id -un)" = fathom ] || { echo "FAIL: the image runs as $(in_image id -un)"; exit 1; }
in_image fathom run --quiet --temperature 0 hello | grep -q "How can I help you?" ||
    { echo "FAIL: the model in the image does not answer"; exit 1; }
in_image mpirun --oversubscribe -np 2 fathom bench --quiet --model-path fathom-tiny --num-prompts 2 --tp 2 |
    grep "^Successful requests" || { echo "FAIL: two ranks"; exit 1; }
echo "the image was built and runs"

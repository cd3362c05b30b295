#!/bin/sh
# Make sure the Debian packages fathom builds and tests with are there.
# Root: install what is missing.  Otherwise: print the one line that does, and stop.
set -eu

wanted="gcc g++ make cmake ninja-build pkg-config git
        libjansson-dev libpcre2-dev libevent-dev libssl-dev libhwloc-dev libedit-dev
        libopenblas-dev liblapacke-dev libxc-dev
        libopenmpi-dev openmpi-bin libcmocka-dev clang libclang-rt-14-dev libomp-dev iproute2 procps python3 curl openssl"

command -v dpkg-query >/dev/null 2>&1 || exit 0 # not Debian: the configure names what it misses

missing=""
for p in $wanted; do
    case $(dpkg-query -W -f='${Status}' "$p" 2>/dev/null) in
    *"ok installed") ;;
    *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "fathom needs packages that are not installed. As root:" >&2
    echo "  apt-get install -y$missing" >&2
    exit 1
fi
echo "installing$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null

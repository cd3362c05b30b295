#!/bin/sh
# packages.sh build|test: are the Debian packages there that fathom is built, or tested, with?
# Root: what is missing is installed.  Others: the one line that would install it is printed, and
# the work goes on, since libraries may come from elsewhere (modules, Spack, a home directory); what
# then is really missing is named by the configure.  Stops only without the tools that run it.
set -eu

case ${1:-build} in
build)
    for_what="to build"
    wanted="gcc g++ make cmake ninja-build pkg-config git
            libjansson-dev libpcre2-dev libevent-dev libssl-dev libhwloc-dev libedit-dev
            libopenblas-dev liblapacke-dev libxc-dev libxxhash-dev libopenmpi-dev openmpi-bin" ;;
test)
    for_what="to test"
    wanted="libcmocka-dev clang libclang-rt-14-dev libomp-dev iproute2 procps python3 python3-venv curl openssl
            bash zsh fish shellcheck lua5.4 dpkg-dev chromium mpich libmpich-dev" ;; # Debian's mpicc stays Open MPI's
*)
    echo "packages.sh: build or test, not $1" >&2
    exit 2 ;;
esac

need_tools()
{
    for tool in cc cmake ninja pkg-config; do
        command -v $tool >/dev/null 2>&1 || { echo "fathom: there is no $tool; nothing can be built" >&2; exit 1; }
    done
}

command -v dpkg-query >/dev/null 2>&1 || { need_tools; exit 0; }

missing=""
for p in $wanted; do
    case $(dpkg-query -W -f='${Status}' "$p" 2>/dev/null) in
    *"ok installed") ;;
    *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "fathom: packages $for_what with that Debian has and this machine has not; as root:" >&2
    echo "  apt-get install -y$missing" >&2
    need_tools
    exit 0
fi
echo "installing$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null

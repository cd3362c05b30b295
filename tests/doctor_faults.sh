#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doctor_faults.sh BUILD [KIND [TIMES]]: does fathom doctor name the right host?  Four ranks on
# this machine, each a host of its own by name.  By hand and as root, on a quiet machine; not
# part of make test.
#
#     healthy    no host may be named
#     quota      node-2 may use half a CPU (control group, version 1 or 2)
#     neighbour  a process that reads memory takes half of what node-2 has while it works
#     link       node-2 is behind a cable that takes 2 ms (netem, or a cable of our own)
#
# 77: this machine cannot do that.
build=$(cd "$1" && pwd) only=${2:-} times=${3:-10}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
id=$$
group=
spaces=
children=

finish()
{
    for child in $children; do kill "$child" 2>/dev/null; done
    for space in $spaces; do
        ip netns pids "$space" 2>/dev/null | xargs -r kill -9 2>/dev/null
        ip netns del "$space" 2>/dev/null
    done
    [ -z "$group" ] || rmdir "$group" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "only root may do this"
unshare -u true 2>/dev/null || skip "no namespaces for host names"

# rank: a rank by its number, on a host of its own by name; node-2 joins the group first.
cat >"$work/rank" <<EOF
#!/bin/sh
n=\$OMPI_COMM_WORLD_RANK
if [ "\$n" = 2 ] && [ -s "$work/group" ]; then echo \$\$ >"\$(cat "$work/group")/cgroup.procs"; fi
echo \$\$ >"$work/pid.\$n"
[ "\$1" = named ] && shift && exec "\$@"
exec unshare -u sh -c 'hostname "\$0"; exec "\$@"' "node-\$n" "\$@"
EOF
chmod +x "$work/rank"

examine="$build/fathom doctor --json --rates none --threads 1 --no-gpu --seconds 10"

on_one_machine() { "$here/rank/mpirun.sh" 4 "$work/rank" $examine >"$work/out" 2>"$work/err"; }

# The verdict of the last run: "fine", or the excluded hosts.
verdict()
{
    python3 - "$work/out" <<'EOF'
import json, sys
text = open(sys.argv[1]).read()
end = text.rfind("\n}") + 2
report = json.loads(text[text.index("{"):end])
print(" ".join(report["exclude"]) or report["verdict"])
EOF
}

# --- kinds ----------------------------------------------------------------------

healthy() { on_one_machine; }

make_group() # half a CPU
{
    [ -z "$group" ] || return 0
    if [ -f /sys/fs/cgroup/cpu/cpu.cfs_quota_us ] || [ -d /sys/fs/cgroup/cpu ]; then
        group=/sys/fs/cgroup/cpu/fathom-doctor-$id
        mkdir "$group" 2>/dev/null || { group=; skip "no control groups"; }
        echo 100000 >"$group/cpu.cfs_period_us" && echo 50000 >"$group/cpu.cfs_quota_us" || skip "no quota"
    else
        group=/sys/fs/cgroup/fathom-doctor-$id
        mkdir "$group" 2>/dev/null || { group=; skip "no control groups"; }
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
        echo "50000 100000" >"$group/cpu.max" || skip "no quota"
    fi
}

quota()
{
    make_group
    echo "$group" >"$work/group"
    on_one_machine
    rc=$?
    : >"$work/group"
    return $rc
}

neighbour()
{
    rm -f "$work/pid.2" "$work/pest"
    "$build/tests/doctor/doctor_neighbour" "$work/pid.2" $((2 * $(nproc))) >"$work/pest" &
    pest=$!
    for try in $(seq 600); do grep -q ready "$work/pest" 2>/dev/null && break; sleep 0.05; done
    on_one_machine
    rc=$?
    kill $pest 2>/dev/null
    wait $pest 2>/dev/null
    return $rc
}

# Four spaces at a switch; the cable of the third is slow.
make_network()
{
    [ -z "$spaces" ] || return 0
    sw=fm-sw-$id
    ip netns add "$sw" 2>"$work/why" || skip "ip netns add: $(cat "$work/why")"
    spaces=$sw
    ip -n "$sw" link add bridge type bridge && ip -n "$sw" link set bridge up || skip "no bridge"
    for n in 0 1 2 3; do
        space=fm-$n-$id
        ip netns add "$space"
        spaces="$spaces $space"
        ip -n "$space" link set lo up
        join_space "$space" "$n" || skip "no cable"
        ip -n "$sw" link set "port$n" master bridge up
        ip -n "$space" addr add 10.78.0.$((n + 1))/24 dev cable
        ip -n "$space" link set cable up
    done
}

join_space() # join_space SPACE NUMBER
{
    if [ "$2" != 2 ]; then
        ip link add cable netns "$1" type veth peer name "port$2" netns "$sw"
        return
    fi
    ip link add cable netns "$1" type veth peer name "port$2" netns "$sw" &&
        ip netns exec "$1" tc qdisc add dev cable root netem delay 2ms 2>/dev/null && return
    ip -n "$1" link del cable
    "$build/tests/doctor/doctor_slow_cable" "/run/netns/$1" cable "/run/netns/$sw" "port$2" 2000 \
        >"$work/cable" 2>&1 &
    children="$children $!"
    for try in $(seq 100); do grep -q ready "$work/cable" && return; sleep 0.05; done
    cat "$work/cable"
    return 1
}

link()
{
    make_network
    cat >"$work/on" <<'EOF'
#!/bin/sh
space=$1 name=$2
shift 2
exec ip netns exec "$space" unshare -u sh -c "hostname $name; $*"
EOF
    cat >"$work/rsh" <<EOF
#!/bin/sh
n=\$((\${1##*.} - 1))
shift
exec "$work/on" fm-\$n-$id node-\$n "\$*"
EOF
    chmod +x "$work/on" "$work/rsh"
    timeout -k 5 120 "$work/on" "fm-0-$id" node-0 "$here/rank/mpirun.sh" 4 \
        --host 10.78.0.1,10.78.0.2,10.78.0.3,10.78.0.4 --mca plm_rsh_agent "$work/rsh" \
        --mca btl self,tcp --mca pml ob1 --mca btl_tcp_if_include 10.78.0.0/24 \
        --mca oob_tcp_if_include 10.78.0.0/24 "$work/rank" named $examine >"$work/out" 2>"$work/err"
}

# --- runs -------------------------------------------------------------------------

failed=0
for kind in ${only:-healthy quota neighbour link}; do
    # shellcheck disable=SC2015
    [ "$kind" = healthy ] && want=fine want_rc=0 || { want=node-2; want_rc=1; }
    good=0
    for i in $(seq "$times"); do
        $kind
        rc=$?
        got=$(verdict 2>&1)
        if [ "$got" = "$want" ] && [ $rc -eq $want_rc ]; then good=$((good + 1)); else
            echo "$kind, run $i: \"$got\", exit status $rc"
            cp "$work/out" "${TMPDIR:-/tmp}/doctor_faults.$kind.$i.json"
            [ -s "$work/out" ] || tail -20 "$work/err"
        fi
    done
    echo "$kind: $want in $good of $times"
    [ "$good" -eq "$times" ] || failed=1
done
exit $failed

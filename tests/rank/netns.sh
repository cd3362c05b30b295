#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# netns.sh BUILD PROGRAM: two "hosts", each a network namespace with its own host name,
# joined by a veth pair; the launcher reaches the other by `ip netns exec` in
# place of ssh, and ranks on different hosts have only TCP between them.
# 77: this machine allows no namespaces.
build=$1 fathom=$2
here=$(cd "$(dirname "$0")" && pwd)
id=$$
a=fm-a-$id b=fm-b-$id
work=$(mktemp -d)

# Launchers that lost each other wait for minutes; ranks must not.
end_all() { for space in "$a" "$b"; do ip netns pids "$space" | xargs -r kill -9; done 2>/dev/null; }

finish()
{
    end_all
    ip netns del "$a" 2>/dev/null
    ip netns del "$b" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

skip() { echo "skipped: $1"; exit 77; }

command -v ip >/dev/null || skip "no ip command (apt install iproute2)"
ip netns add "$a" 2>"$work/why" || skip "ip netns add: $(cat "$work/why")"
ip netns add "$b" || skip "ip netns add"
ip link add "fa$id" netns "$a" type veth peer name "fb$id" netns "$b" 2>"$work/why" ||
    skip "no virtual cable: $(cat "$work/why")"
ip -n "$a" addr add 10.77.0.1/24 dev "fa$id" && ip -n "$b" addr add 10.77.0.2/24 dev "fb$id" || exit 1
for end in "$a fa$id" "$b fb$id"; do
    set -- $end
    ip -n "$1" link set lo up && ip -n "$1" link set "$2" up || exit 1
done
unshare -u true 2>/dev/null || skip "no namespaces for host names"

# on SPACE NAME COMMAND...: as if logged in there.  ssh joins its arguments to
# one line for a shell; so does this.
cat >"$work/on" <<'EOF'
#!/bin/sh
space=$1 name=$2
shift 2
exec ip netns exec "$space" unshare -u sh -c "hostname $name; $*"
EOF
cat >"$work/rsh" <<EOF
#!/bin/sh
[ "\$1" = 10.77.0.2 ] || { echo "no host \$1" >&2; exit 1; }
shift
exec "$work/on" $b node-b "\$*"
EOF
chmod +x "$work/on" "$work/rsh"

launch() # launch PROGRAM ARG...: two ranks on each host
{
    timeout -k 5 40 "$work/on" "$a" node-a "$here/mpirun.sh" 4 --host 10.77.0.1:2,10.77.0.2:2 \
        --mca plm_rsh_agent "$work/rsh" --mca btl self,vader,tcp --mca pml ob1 \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        -x FM_COMM_TIMEOUT -x FM_COMM_SILENCE "$@"
}

expect() # expect TEXT: in the last output
{
    grep -q "$1" "$work/out" && return
    echo "FAILED: no \"$1\" in"
    cat "$work/out"
    exit 1
}

export FM_COMM_TIMEOUT=10 FM_COMM_SILENCE=1.5

launch "$build/rank_start" >"$work/out" 2>&1 || { cat "$work/out"; echo "FAILED: start"; exit 1; }
expect "^ *0 node-a "
expect "^ *3 node-b "
cat "$work/out"

launch "$build/rank_collectives" >"$work/out" 2>&1 || { cat "$work/out"; echo "FAILED: collectives"; exit 1; }

launch "$build/rank_counter" >"$work/out" 2>&1 || { cat "$work/out"; echo "FAILED: counter"; exit 1; }

want=$("$build/rank_leaves")
got=$(launch "$build/rank_leaves" 7000)
[ "$got" = "$want" ] || { echo "FAILED: sum $got over two hosts, $want on one rank"; exit 1; }

# fathom-tiny, divided over both: stages, columns or replicas meet on
# the cable, and the answers are those of one rank.
box="bench --quiet --skip-warmup --model-path $here/../../models/fathom-tiny --dataset-name random
    --random-input-len 90 --random-output-len 16 --num-prompts 8 --chunked-prefill-size 32
    --page-size 4 --threads 1 --return-logprob --output-details"
"$fathom" $box "$work/alone" >"$work/out" 2>&1 || { cat "$work/out"; echo "FAILED: one rank"; exit 1; }
for layout in "--tp 2 --pp 2" "--tp 2 --dp 2" "--tp 4 --ep 2 --dp 2 --enable-dp-attention"; do
    launch "$fathom" $box "$work/many" $layout >"$work/out" 2>&1 && cmp "$work/alone" "$work/many" ||
        { cat "$work/out"; echo "FAILED: two hosts with $layout"; exit 1; }
    rm "$work/many"
done

for how in kill stop; do
    launch "$build/rank_fault" $how 3 >"$work/out" 2>&1 && { echo "FAILED: $how ended well"; exit 1; }
    expect "^fathom: rank 3 on node-b .*; it was: step 300"
done

# The link goes down: no connection is closed, no packet arrives.
ranks_left() { for space in "$a" "$b"; do ip netns pids "$space"; done | xargs -r ps -o stat=,comm= -p | grep -c '^[^Z].*rank_fault'; }

launch "$build/rank_fault" absent 1 >"$work/out" 2>&1 &
job=$!
for i in $(seq 100); do
    [ "$(ranks_left)" -lt 4 ] || break
    sleep 0.1
done
[ "$(ranks_left)" -eq 4 ] || { echo "FAILED: $(ranks_left) ranks before the cable was pulled"; exit 1; }
sleep 5 # they have come to the call that rank 1 misses, beside other tests too
ip -n "$a" link set "fa$id" down
for i in $(seq 100); do
    [ "$(ranks_left)" -gt 0 ] || break
    sleep 0.1
done
[ "$(ranks_left)" -eq 0 ] || { echo "FAILED: $(ranks_left) ranks ten seconds after the cable was pulled"; exit 1; }
end_all
wait $job
expect "^fathom: rank [23] on node-b has not answered for .*; it was: step 300"
echo "two hosts agree, and notice each other's end"

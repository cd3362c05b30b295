#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What speculation gains: the same work with and without it, alternating, and the ratio.
#
#     tools/eval/drafts.sh eval PROGRAM SET [OPTION...]     questions, for 1 and for 32 at a time
#     tools/eval/drafts.sh batch PROGRAM [OPTION...]        fathom bench --batch-size, decode alone
#
# Options are the program's, those of speculation among them; without --speculative-algorithm it
# is NEXTN.  ROUNDS (3) pairs are measured, and the median of their ratios is printed, above 1: faster
# with drafts.  AT gives other numbers of questions at a time than "1 32".
set -eu
if [ $# -lt 2 ]; then
    sed -n 's/^# \{0,1\}//; 3,12p' "$0" >&2
    exit 2
fi
mode=$1 program=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Options of speculation, which the run without it does not get.
plain() { # prints the others, one per line
    skip=0
    for word; do
        [ $skip -eq 0 ] || { skip=0; continue; }
        case $word in
        --speculative-adaptive | --disable-speculative-adaptive | --speculative-*=*) ;;
        --speculative-*) skip=1 ;;
        *) printf '%s\n' "$word" ;;
        esac
    done
}

line_end='
'

number() { # number FIELD FILE: of its JSON lines, one per line
    sed -n "s/.*\"$1\": \([0-9.eE+-]*\).*/\1/p" "$2"
}

median() { sort -g | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }

drafts=NEXTN
case " $* " in *" --speculative-algorithm"*) drafts="" ;; esac

measure() { # measure OUT WITH OPTION...: throughput lines to OUT
    out=$1
    shift
    if [ "$mode" = eval ]; then
        "$program" eval --quiet --json "$@" >"$out"
    else
        rm -f "$out"
        "$program" bench --quiet --result-filename "$out" "$@" >&2
    fi
}

field=output_throughput
[ "$mode" = eval ] || field=decode_throughput

compare() { # compare WORDS OPTION...
    what=$1
    shift
    : >"$work/ratios"
    for _ in $(seq "${ROUNDS:-3}"); do
        plain "$@" >"$work/words"
        (IFS=$line_end && set -f && measure "$work/off" $(cat "$work/words")) # an option may hold spaces
        measure "$work/on" "$@" ${drafts:+--speculative-algorithm $drafts}
        number $field "$work/off" >"$work/a"
        number $field "$work/on" >"$work/b"
        number accept_length "$work/on" >"$work/l"
        number batch_size "$work/on" >"$work/n"
        [ -s "$work/n" ] || echo "$what" >"$work/n"
        [ -s "$work/l" ] || sed 's/.*/1/' "$work/b" >"$work/l"
        paste -d ' ' "$work/n" "$work/a" "$work/b" "$work/l" >>"$work/ratios"
    done
    for n in $(cut -d ' ' -f 1 "$work/ratios" | sort -un); do
        awk -v n="$n" '$1 == n { print $3 / $2 }' "$work/ratios" | median >"$work/ratio"
        awk -v n="$n" -v ratio="$(cat "$work/ratio")" '$1 == n { off += $2; on += $3; l += $4; k++ }
            END { printf "at a time %4d: %10.1f tok/s without, %10.1f with drafts, accept length %.2f, ratio %.2f\n",
                         n, off / k, on / k, l / k, ratio }' "$work/ratios"
    done
    grep -q simulated_accept_length "$work/on" && echo "(acceptance simulated)" || :
}

case $mode in
eval)
    set=$1
    shift
    for n in ${AT:-1 32}; do compare "$n" --set "$set" --max-running-requests "$n" "$@"; done
    ;;
batch) compare batch "$@" ;;
*) echo "eval or batch, not $mode" >&2; exit 2 ;;
esac

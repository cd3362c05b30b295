#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A server under twice its capacity, with everything clients and machines do to it:
#
#     tests/soak.sh [SECONDS [PROGRAM [RANKS...]]]      1800 s, build/fathom, half with 1 rank and half with 2
#
# Streams and whole answers in six dialects, greedy, sampled with seeds, constrained; cancels, disconnects, bad input,
# slow and stalled readers, a log that is not read, ranks stopped for up to 2.5 s.  Every answer is compared by id and
# text with that of an undisturbed server; memory has to stay flat.  Prints a table; status 1 after any violation.
# tests/soak.sh 60 is a short one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-1800}
program=$(realpath "${2:-$here/../build/fathom}")
[ $# -le 2 ] && set -- || shift 2
exec python3 -B "$here/soak/soak.py" "$program" "$seconds" "$@"

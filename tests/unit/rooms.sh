#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/rooms.awk finds an undeclared include and a circle of rooms:  rooms.sh ROOMS_AWK
set -eu
law=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p floor house/attic
echo '#include "house/house.h"' >floor/floor.c
printf '#include "floor/floor.h"\n#include "house/plan.h"\n' >house/house.c
printf '\n#include "house/house.h"\n' >house/plan.h
echo '#include "house/attic/attic.h"' >house/attic/attic.c

# expect STATUS TEXT: of the rooms in rooms.txt; no text: it says nothing
expect()
{
    status=0
    awk -f "$law" rooms.txt floor/floor.c house/house.c house/plan.h house/attic/attic.c >said || status=$?
    if [ "$status" -ne "$1" ] || { [ -n "$2" ] && ! grep -qxF "$2" said; } || { [ -z "$2" ] && [ -s said ]; }; then
        echo "exit status $status, wanted $1 and: $2"
        cat said
        exit 1
    fi
}

printf 'floor floor house = floor/floor.c\nhouse house floor = house/house.c\n' >rooms.txt
expect 1 "src/: error: room floor uses itself by way of others"

printf 'floor floor = floor/floor.c\nhouse house floor = house/house.c\n' >rooms.txt
expect 1 "src/floor/floor.c:1: error: house/house.h is of room house, which room floor does not declare"

: >floor/floor.c
expect 0 ""

printf 'floor floor = floor/floor.c\nplan house = house/plan.h\nhouse house floor = house/house.c\n' >rooms.txt
expect 1 "src/house/house.c:2: error: house/plan.h is of room plan, which room house does not declare"
expect 1 "src/house/plan.h:2: error: house/house.h is of room house, which room plan does not declare"

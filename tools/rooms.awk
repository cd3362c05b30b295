# SPDX-License-Identifier: Apache-2.0
# Headers obey the law that symbols obey: a file includes headers of its own room and
# of the rooms its room declares.  Run by cmake/headers.cmake:
#
#     awk -f tools/rooms.awk ROOMS FILE...     in src/; names every include that is against
#                                              the law, then exits with 1
#
# ROOMS has a line per room:  name dir uses... = sources...   (paths relative to src/).
# A file's room is the one that lists it, or the source of the same name; any other
# file's is the one of its directory, or of the nearest directory above that has one: the
# one of the same name, where there are several, or the first.

function stem(path) { sub(/\.[a-z]+$/, "", path); return path }

function parent(path) { return sub(/\/[^\/]*$/, "", path) ? path : "" }

function room_of(path,    dir) {
    if (path in known) return known[path]
    if (stem(path) in owner) return known[path] = owner[stem(path)]
    for (dir = parent(path); dir != "" && !(dir in room_at); dir = parent(dir)) {}
    return known[path] = dir == "" ? "" : room_at[dir]
}

# Every room that can be reached is below; one that can reach itself is in a cycle.
function reach(from, room,    key, pair) {
    for (key in uses) {
        split(key, pair, SUBSEP)
        if (pair[1] != room || (from, pair[2]) in reached) continue
        reached[from, pair[2]] = 1
        reach(from, pair[2])
    }
}

NR == FNR {
    rooms[$1] = 1
    if (!($2 in room_at) || $2 ~ "(^|/)" $1 "$") room_at[$2] = $1
    for (i = 3; $i != "="; i++) uses[$1, $i] = 1
    for (i++; i <= NF; i++) owner[stem($i)] = $1
    next
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    mine = room_of(FILENAME)
    theirs = room_of(quoted[2])
    if (mine == "" || theirs == "" || mine == theirs || (mine, theirs) in uses) next
    printf "src/%s:%d: error: %s is of room %s, which room %s does not declare\n", FILENAME, FNR, \
        quoted[2], theirs, mine
    n_wrong++
}

END {
    for (room in rooms) {
        reach(room, room)
        if (!((room, room) in reached)) continue
        printf "src/: error: room %s uses itself by way of others\n", room
        n_wrong++
    }
    exit n_wrong > 0
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A conversation as a tree of turns, so that a message can have several versions
 * and an answer, too.  One child of each turn is chosen; the chosen ones, from the
 * root on, are the path: what is shown and what the model is told.
 *
 *   0 --- 1 user --- 2 answer
 *     |          +-- 3 answer* --- 4 user*      * chosen
 *     +-- 5 user
 */
"use strict";

class Tree {
  /* turns: [{id, parent, role, content, ...}], parents before children, ids from 1 on;
   * chosen: {parent: child}. */
  constructor({ turns = [], chosen = {} } = {}) {
    this.turns = turns;
    this.chosen = chosen;
  }

  children(parent) {
    return this.turns.filter((t) => t.parent === parent);
  }

  path() {
    const byIdOf = new Map(this.turns.map((t) => [t.id, t])), path = [];
    let turn = byIdOf.get(this.chosen[0]);
    for (; turn; turn = byIdOf.get(this.chosen[turn.id])) path.push(turn);
    return path;
  }

  /* The path up to and without `turn`. */
  before(turn) {
    const path = this.path(), i = path.indexOf(turn);
    return i < 0 ? path : path.slice(0, i);
  }

  add(parent, turn) {
    turn.id = 1 + this.turns.reduce((most, t) => Math.max(most, t.id), 0);
    turn.parent = parent;
    this.turns.push(turn);
    this.chosen[parent] = turn.id;
    return turn;
  }

  addLast(turn) {
    const path = this.path();
    return this.add(path.length ? path[path.length - 1].id : 0, turn);
  }

  choose(turn) {
    this.chosen[turn.parent] = turn.id;
  }

  /* The turns that stand for the same place: versions of one message or one answer. */
  versions(turn) {
    return this.children(turn.parent).filter((t) => t.role === turn.role);
  }

  /* Takes `turn` out; a user's message goes with its answers.  What was said after
   * it on the path stays and follows what came before, but for one of several
   * answers: there, another takes its place. */
  remove(turn) {
    const path = this.path(), i = path.indexOf(turn), { parent } = turn;
    const others = this.versions(turn).filter((t) => t !== turn);
    const last = turn.role === "user" && path[i + 1] && path[i + 1].role !== "user" ? i + 1 : i;
    const heirs = turn.role !== "user" && others.length ? [] : this.children(path[last].id);
    for (const heir of heirs) heir.parent = parent;
    const next = heirs.length ? path[last + 1] : others[others.length - 1];
    this.chosen[parent] = next ? next.id : 0;
    this.turns = this.turns.filter((t) => t !== turn);
    this.prune();
  }

  /* Turns whose parent is gone go, too. */
  prune() {
    const alive = new Set([0]);
    this.turns = this.turns.filter((t) => alive.has(t.parent) && alive.add(t.id));
    for (const parent of Object.keys(this.chosen))
      if (!alive.has(Number(parent)) || !alive.has(this.chosen[parent]) || !this.chosen[parent])
        delete this.chosen[parent];
  }
}

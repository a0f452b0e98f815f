// The rows of the lanes: lives grouped, filtered and sorted. Pure.
//
// A row is one name: a pod that is created again under its name is a second life on the same row, which stands where the last one is.
import { existsAt, ownerName } from "./life.js";

/**
 * @typedef {import("./life.js").Life} Life
 * @typedef {{key: string, type: "group"|"node"|"pod", title: string, count: number, lives: Life[]}} Row
 */

const GROUPS = {
  node: (life) => life.node || "",
  owner: (life) => ownerName(life),
  namespace: (life) => life.ns,
};
const WITHOUT = { node: "not on a node", owner: "without an owner", namespace: "" };

/** web-2 before web-10: numbers are padded once per life, so that sorting compares plain strings. */
export const sortKey = (text) => text.replace(/\d+/g, (digits) => digits.padStart(9, "0"));

/**
 * @param {Iterable<Life>} lives
 * @param {{group: "node"|"owner"|"namespace", matches: null|((life: Life, t: number) => boolean), from: number, at: number}} view
 * @returns {Row[]}
 */
export function buildRows(lives, view) {
  const groupOf = GROUPS[view.group];
  const groups = new Map();
  const group = (name) => {
    let found = groups.get(name);
    if (!found) groups.set(name, (found = { name, nodes: [], rows: new Map() }));
    return found;
  };
  const nodes = [];
  const pods = new Map();
  for (const life of lives) {
    // What was created later does not exist yet.
    if (life.from > view.at || (life.to !== null && life.to < view.from)) continue;
    if (life.kind === "node") {
      nodes.push(life);
      continue;
    }
    if (view.matches && !view.matches(life, view.at)) continue;
    const key = `${life.ns}/${life.name}`;
    const row = pods.get(key);
    if (row) row.lives.push(life);
    else pods.set(key, { key, sort: life.sort || sortKey(key), title: life.name, lives: [life] });
  }
  for (const [key, row] of pods) group(groupOf(row.lives.length > 1 ? row.lives.sort(byAge).at(-1) : row.lives[0])).rows.set(key, row);
  if (view.group === "node") {
    for (const life of nodes) {
      if (!view.matches || groups.has(life.name) || view.matches(life, view.at)) group(life.name).nodes.push(life);
    }
  } else {
    const shown = nodes.filter((life) => !view.matches || view.matches(life, view.at));
    if (shown.length) group("\0nodes").nodes.push(...shown);
  }
  return flatten(groups, view.group, view.at);
}

function flatten(groups, kind, at) {
  // What waits for a node comes first; pods without an owner, and seldom of interest, last.
  const place = (name) => (name === "\0nodes" ? "" : name ? sortKey(name) : kind === "node" ? "\0" : "\uffff");
  const sorted = [...groups.values()].map((each) => ({ ...each, sort: place(each.name) })).sort(bySort);
  /** @type {Row[]} */
  const rows = [];
  for (const each of sorted) {
    // Gone pods have rows, but are not counted.
    const count = [...each.rows.values()].filter((row) => row.lives.some((life) => existsAt(life, at))).length;
    const byName = new Map();
    for (const life of each.nodes) byName.set(life.name, [...(byName.get(life.name) || []), life]);
    if (kind !== "node" || !each.nodes.length) {
      const title = each.name === "\0nodes" ? "Nodes" : each.name || WITHOUT[kind];
      rows.push({ key: `g:${each.name}`, type: "group", title, count: count || byName.size, lives: [] });
    }
    const names = [...byName].map(([name, lives]) => ({ name, lives, sort: sortKey(name) })).sort(bySort);
    for (const node of names) {
      rows.push({ key: `n:${node.name}`, type: "node", title: node.name, count, lives: node.lives.sort(byAge) });
    }
    for (const row of [...each.rows.values()].sort(bySort)) {
      rows.push({ key: `p:${row.key}`, type: "pod", title: row.title, count: 0, lives: row.lives });
    }
  }
  return rows;
}

const bySort = (a, b) => (a.sort < b.sort ? -1 : a.sort > b.sort ? 1 : 0);
const byAge = (a, b) => a.from - b.from;

// The rows of the lanes: lives grouped, filtered and sorted. Pure.
//
// A row is one name: a pod that is created again under its name is a second life on the same row, which stands where the last one is.
import { existsAt, ownerName } from "./life.js";

/**
 * @typedef {import("./life.js").Life} Life
 * @typedef {{key: string, type: "group"|"node"|"pod", title: string, sort: string, count: number, lives: Life[]}} Row
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
    if (!found) groups.set(name, (found = { name, nodes: new Map(), rows: [] }));
    return found;
  };
  const nodes = [];
  const pods = new Map();
  for (const life of lives) {
    // What was created later does not exist yet.
    if (life.from > view.at || (life.to !== null && life.to < view.from)) continue;
    if (life.kind === "node") nodes.push(life);
    else if (!view.matches || view.matches(life, view.at)) addTo(pods, life, "pod");
  }
  for (const row of pods.values()) {
    if (row.lives.length > 1) row.lives.sort(byAge);
    group(groupOf(row.lives[row.lives.length - 1])).rows.push(row);
  }
  const isByNode = view.group === "node";
  for (const life of nodes) {
    const isShown = !view.matches || (isByNode && groups.has(life.name)) || view.matches(life, view.at);
    if (isShown) addTo(group(isByNode ? life.name : "\0nodes").nodes, life, "node");
  }
  return flatten(groups, view.group, view.at);
}

/** Lives of one name share a row. */
function addTo(rows, life, type) {
  const row = rows.get(life.title);
  if (row) row.lives.push(life);
  else rows.set(life.title, { key: `${type}:${life.title}`, type, title: life.name, sort: life.sort, count: 0, lives: [life] });
}

function flatten(groups, kind, at) {
  // What waits for a node comes first; pods without an owner, and seldom of interest, last.
  const place = (name) => (name === "\0nodes" ? "" : name ? sortKey(name) : kind === "node" ? "\0" : "\uffff");
  for (const each of groups.values()) each.sort = place(each.name);
  /** @type {Row[]} */
  const rows = [];
  for (const each of [...groups.values()].sort(bySort)) {
    // Gone pods have rows, but are not counted.
    let count = 0;
    for (const row of each.rows) if (row.lives.some((life) => existsAt(life, at))) count++;
    const nodes = [...each.nodes.values()].sort(bySort);
    if (kind !== "node" || !nodes.length) {
      const title = each.name === "\0nodes" ? "Nodes" : each.name || WITHOUT[kind];
      rows.push({ key: `group:${each.name}`, type: "group", title, sort: each.sort, count: count || nodes.length, lives: [] });
    }
    for (const row of nodes) {
      if (row.lives.length > 1) row.lives.sort(byAge);
      row.count = count;
      rows.push(row);
    }
    for (const row of each.rows.sort(bySort)) rows.push(row);
  }
  return rows;
}

const bySort = (a, b) => (a.sort < b.sort ? -1 : a.sort > b.sort ? 1 : 0);
const byAge = (a, b) => a.from - b.from;

// The search language, as a predicate over lives. Pure.
//
// Terms are separated by spaces and all must match; `-` in front negates. `stuck`, `gone`, `state:ready`, `node:x`, `ns:x`, `owner:x`,
// `name:x`, `kind:node`, `key=value` or `label:key` for a label; other words are looked for in names. Values may contain `*`.
import { NODE_STATES, POD_STATES, fullName, ownerName, stateAt, stuckAt, table } from "./life.js";

const FIELDS = table({
  state: (life, t) => (life.to !== null && life.to <= t ? "gone" : stateAt(life, t)),
  node: (life) => (life.kind === "node" ? life.name : life.node || ""),
  ns: (life) => life.ns,
  namespace: (life) => life.ns,
  owner: (life) => life.owner?.name || "",
  name: (life) => life.name,
  kind: (life) => life.kind,
  uid: (life) => life.uid,
});

/** A glob as a function. Only `*` is special, so that no name can be an expensive pattern. */
function glob(pattern) {
  if (!pattern.includes("*")) return (text) => text.toLowerCase() === pattern;
  const parts = pattern.split("*");
  return (value) => {
    const text = value.toLowerCase();
    if (!text.startsWith(parts[0])) return false;
    let from = parts[0].length;
    for (const part of parts.slice(1, -1)) {
      const found = text.indexOf(part, from);
      if (found < 0) return false;
      from = found + part.length;
    }
    const last = parts[parts.length - 1];
    return text.length - last.length >= from && text.endsWith(last);
  };
}

function term(word) {
  if (word.startsWith("-") && word.length > 1) {
    const inner = term(word.slice(1));
    return (life, t) => !inner(life, t);
  }
  if (word === "stuck") return (life, t) => stuckAt(life, t) !== "";
  if (word === "gone") return (life, t) => life.to !== null && life.to <= t;
  const [, field, value] = /^([a-z]+):(.*)$/.exec(word) || [];
  if (field === "label") return label(value);
  if (field && FIELDS[field]) {
    const matches = glob(value);
    return (life, t) => matches(FIELDS[field](life, t));
  }
  if (word.indexOf("=") > 0) return label(word);
  return (life) => fullName(life).includes(word) || (life.node || "").includes(word) || ownerName(life).toLowerCase().includes(word);
}

/** `key=value`, or `key` for any value. */
function label(word) {
  const [key, ...value] = word.split("=");
  const matches = glob(value.length ? value.join("=") : "*");
  return (life) => Object.entries(life.labels || {}).some(([name, text]) => name.toLowerCase() === key && matches(text));
}

const wordsOf = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);
const STATES = [...new Set([...Object.keys(POD_STATES), ...Object.keys(NODE_STATES), "gone"])];

/** What a query asks for that does not exist, in words; "" if all of it does. */
export function problemOf(query) {
  for (const word of wordsOf(query)) {
    const [, field, value] = /^-?([^:=]*):(.*)$/.exec(word) || [];
    if (field !== undefined && field !== "label" && !FIELDS[field]) return `unknown field '${field}': ${Object.keys(FIELDS).join(", ")}, label`;
    if (field === "state" && value && !STATES.some(glob(value))) return `unknown state '${value}': ${STATES.join(", ")}`;
  }
  return "";
}

/**
 * @param {string} query
 * @returns {null | ((life: import("./life.js").Life, t: number) => boolean)} null for an empty query
 */
export function compile(query) {
  const words = wordsOf(query);
  if (!words.length) return null;
  const terms = words.map(term);
  return (life, t) => terms.every((matches) => matches(life, t));
}

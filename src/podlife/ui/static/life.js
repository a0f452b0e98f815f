// What a life says at a time. Pure. The types follow the protocol of the server, version 2.

/**
 * @typedef {{since: number, until: number|null, at: number|null, missed: number|null, who: string, what: string, state: string}} Prediction
 * @typedef {{uid: string, kind: "pod"|"node", ns: string, name: string, node?: string, owner?: {kind: string, name: string}|null,
 *   labels?: Record<string, string>, from: number, to: number|null, segs: [number, string][], marks: [number, string, string, string][],
 *   next: Prediction[], stage: string, waits: string, stuck: [number, string][], ready?: string, restarts?: number, deleted?: number|null,
 *   grace?: number|null, taints?: string[], conditions?: Record<string, string>, cordoned?: boolean, title: string, sort: string}} Life
 */
import { clockTime, duration, plural, relative } from "./dom.js";

/** A table without the properties that every object has: a word of the cluster or of a user may be `constructor`. */
export const table = (entries) => Object.assign(Object.create(null), entries);

/** State, and how people read it. The order is that of the legend. */
export const POD_STATES = table({
  pending: "pending", init: "initialising", starting: "starting", unready: "not ready", ready: "ready",
  terminating: "terminating", held: "held by finalizers", succeeded: "succeeded", failed: "failed",
});
export const NODE_STATES = table({ ready: "ready", "not-ready": "not ready", unknown: "unknown", silent: "silent" });

/** Mark kind: glyph on the bar, importance where marks overlap, and the short word beside it, if it gets one. */
export const MARKS = table({
  created: ["│", 1, ""], scheduled: ["▸", 2, ""], started: ["●", 3, ""], condition: ["·", 0, ""], event: ["·", 0, ""],
  ended: ["○", 4, ""], warning: ["!", 5, ""], unhealthy: ["!", 6, "probe failed"], restarted: ["↻", 7, "restarted"],
  taint: ["◆", 5, ""], evicted: ["⏏", 8, "evicted"], delete: ["D", 9, "DELETE"], prestop: ["P", 10, "preStop"],
  term: ["T", 11, "TERM"], kill: ["K", 12, "KILL"], gone: ["■", 13, "gone"],
});

export const existsAt = (life, t) => life.from <= t && (life.to === null || t < life.to);

/** What holds at a time, of words that each hold from a time on. */
function lastAt(segs, t) {
  for (let i = segs.length - 1; i >= 0; i--) if (segs[i][0] <= t) return segs[i][1];
  return "";
}

/** The state at a time, or "" before its creation. */
export const stateAt = (life, t) => lastAt(life.segs, t) || (life.segs.length && life.from <= t ? life.segs[0][1] : "");

/** The cause for which it was stuck at a time, or "". */
export const stuckAt = (life, t) => lastAt(life.stuck, t);

/** Restarts until a time: those of now, less those that were seen later. */
export const restartsAt = (life, t) => Math.max(0, (life.restarts || 0) - life.marks.filter((mark) => mark[1] === "restarted" && mark[0] > t).length);

export const stateWord = (life, state) => (life.kind === "node" ? NODE_STATES : POD_STATES)[state] || state || "not seen yet";

/** Predictions that held at a time, the earliest first. */
export function nextAt(life, t) {
  const shown = life.next.filter((each) => each.since <= t && (each.until === null || t < each.until));
  return shown.sort((a, b) => (a.at ?? Infinity) - (b.at ?? Infinity));
}

/** Whether it was missed at a time, even if it has happened after that. */
export const isMissed = (each, t) => each.missed !== null && each.missed <= t;

export function predictionText(each, t) {
  const act = `${each.who} ${each.what}`.trim();
  if (isMissed(each, t)) return `missed ${relative(each.at, t)}: ${act}`;
  // An actor may be a little late.
  return each.at === null ? `then ${act}` : `${each.at < t - 500 ? "due " : ""}${relative(each.at, t)}: ${act}`;
}

export const fullName = (life) => (life.ns ? `${life.ns}/${life.name}` : life.name);
export const ownerName = (life) => (life.owner ? `${life.owner.kind} ${life.owner.name}` : "");

/** One sentence for screen readers and for the grid. */
export function describe(life, t, isPresent) {
  const parts = [`${life.kind} ${fullName(life)}`, stateWord(life, stateAt(life, t))];
  if (life.to !== null && life.to <= t) parts[1] = `gone since ${clockTime(life.to)}`;
  if (life.kind === "pod") {
    if (life.node) parts.push(`on ${life.node}`);
    if (isPresent && life.ready) parts.push(`containers ready ${life.ready}`);
    const restarts = restartsAt(life, t);
    if (restarts) parts.push(plural(restarts, "restart"));
  } else if (isPresent) {
    if (life.cordoned) parts.push("cordoned");
    if (life.taints?.length) parts.push(`taints ${life.taints.join(", ")}`);
    const bad = badConditions(life);
    if (bad.length) parts.push(`conditions ${bad.join(", ")}`);
  }
  // What it waits for in words is known for now only.
  const stuck = stuckAt(life, t);
  if (stuck) parts.push(`stuck: ${(isPresent && life.waits) || stuck}`);
  else if (isPresent && life.waits) parts.push(`waits: ${life.waits}`);
  const next = nextAt(life, t)[0];
  if (next) parts.push(`next ${predictionText(next, t)}`);
  return parts.join(", ");
}

/** Conditions that are not as they should be: Ready is good when True, all others when False. */
export const badConditions = (life) =>
  Object.entries(life.conditions || {})
    .filter(([type, status]) => status !== (type === "Ready" ? "True" : "False"))
    .map(([type, status]) => `${type}=${status}`);

/** What a time in a life means, for a tooltip. */
export function momentText(life, t, at) {
  const segs = life.segs;
  let i = segs.length - 1;
  while (i > 0 && segs[i][0] > t) i--;
  if (!segs.length) return [];
  const start = segs[i][0];
  const end = Math.min(segs[i + 1]?.[0] ?? Infinity, life.to ?? Infinity, at);
  return [`${fullName(life)}: ${stateWord(life, segs[i][1])}`, `${clockTime(start)} for ${duration(end - start)}`];
}

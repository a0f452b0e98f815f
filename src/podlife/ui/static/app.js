// The page: what is shown, the keyboard, the theme, and one loop that draws when something changed or time moved by a pixel.
import { announce, byId, h, plural, setText } from "./dom.js";
import { Grid } from "./grid.js";
import { Lanes } from "./lanes.js";
import { POD_STATES, existsAt, stateAt } from "./life.js";
import { paintState, prepare, readTheme } from "./paint.js";
import { Panel } from "./panel.js";
import { PlanView } from "./plan.js";
import { compile } from "./search.js";
import { Store } from "./store.js";
import { Timebar } from "./timebar.js";
import { Tooltip } from "./tooltip.js";

const MANY_PODS = 300;
const MODES = ["lanes", "grid", "plan"];

const store = new Store();
// `at` is null while now is followed; `mode` is empty until somebody chooses.
const view = { mode: "", group: "node", query: "", matches: null, span: 300000, at: null, selected: "" };

const tooltip = new Tooltip();
const timebar = new Timebar({ store, view, changed: () => draw() });
const panel = new Panel({ store, view, close: () => select("") });
const lanes = new Lanes({ store, view, select, tooltip, pan: (ms) => timebar.pan(ms), zoom: (factor) => timebar.zoom(factor) });
const grid = new Grid({ store, view, zoomTo, tooltip });
const plan = new PlanView({ store, view, select });

/** Lanes or grid, by the number of pods, until the user chooses. */
function mode() {
  if (view.mode) return view.mode;
  // Back to lanes only well below the limit: a cluster at the limit does not flicker.
  isCrowd = counts.pods > (isCrowd ? MANY_PODS / 2 : MANY_PODS);
  return isCrowd && !view.query ? "grid" : "lanes";
}
let isCrowd = false;

function setMode(next) {
  view.mode = next;
  tooltip.hide();
  remember();
  draw(true);
}

function setQuery(query) {
  view.query = query.slice(0, 200);
  view.matches = compile(view.query);
  if (byId("search").value !== query) byId("search").value = view.query;
  remember();
  draw(true);
}

function select(uid) {
  if (uid && !store.lives.has(uid)) return announce("this pod is no longer known");
  const back = panel.root.contains(document.activeElement) && !uid;
  view.selected = uid;
  tooltip.hide();
  if (uid) panel.show(uid);
  else panel.hide();
  remember();
  draw();
  if (back && mode() === "lanes") lanes.focusRow(lanes.indexes?.get(lanes.current) ?? 0);
}

function zoomTo(node, uid) {
  view.group = "node";
  byId("group").value = "node";
  setQuery(node ? `node:${node}` : "node: kind:pod");
  setMode("lanes");
  if (uid) select(uid);
}

/** The address keeps the view, so that a reload or a link shows the same. */
function remember() {
  const kept = new URLSearchParams();
  for (const name of ["mode", "group", "query", "selected"]) if (view[name]) kept.set(name, view[name]);
  history.replaceState(null, "", `#${kept}`);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  if (MODES.includes(kept.get("mode"))) view.mode = kept.get("mode");
  if (["node", "owner", "namespace"].includes(kept.get("group"))) view.group = kept.get("group");
  byId("group").value = view.group;
  wanted = kept.get("selected") || "";
  setQuery(kept.get("query") || "");
}

let wanted = "";
let wasSynced = false;
let counts = { pods: 0, nodes: 0, stuck: 0, failed: 0 };
let counted = 0;
let countedAt = null;

function count() {
  // Ten thousand lives are counted a few times a second, or when the time that is shown was moved.
  if (view.at === countedAt && performance.now() - counted < 300) return;
  countedAt = view.at;
  counted = performance.now();
  const at = view.at ?? store.now();
  const next = { pods: 0, nodes: 0, stuck: 0, failed: 0 };
  for (const life of store.lives.values()) {
    if (!existsAt(life, at)) continue;
    next[life.kind === "node" ? "nodes" : "pods"]++;
    if (life.stuck && view.at === null) next.stuck++;
    if (life.kind === "pod" && stateAt(life, at) === "failed") next.failed++;
  }
  counts = next;
  setText(byId("count-all"), `${plural(counts.pods, "pod")} · ${plural(counts.nodes, "node")}`);
  document.title = counts.stuck ? `${counts.stuck} stuck · podlife` : "podlife";
  setText(byId("count-stuck"), `${counts.stuck.toLocaleString("en")} stuck`);
  setText(byId("count-failed"), `${counts.failed.toLocaleString("en")} failed`);
  byId("count-stuck").classList.toggle("bad", counts.stuck > 0);
  // Who was stuck at an earlier time is not known.
  byId("count-stuck").hidden = view.at !== null;
}

const CONNECTIONS = {
  connecting: "connecting", connected: "live", lost: "connection lost, retrying",
  denied: "access denied: open the address that podlife ui printed",
};

function drawState() {
  const connection = store.connection !== "connected" ? CONNECTIONS[store.connection]
    : store.isReplay ? "replay" : store.isLive ? (wasSynced ? "live" : "reading the cluster") : "the API server does not respond";
  const element = byId("connection");
  element.dataset.state = store.connection === "connected" && store.isLive ? "good" : store.connection === "connecting" ? "" : "bad";
  if (element.textContent !== connection) announce(`podlife: ${connection}`);
  setText(element, connection);
  setText(byId("cluster"), store.hello?.cluster || "");
  const isLost = store.connection === "lost" || store.connection === "denied" || !store.isLive;
  const lost = byId("banner-lost");
  lost.hidden = !isLost;
  setText(lost, isLost ? `${connection[0].toUpperCase()}${connection.slice(1)}. What is shown may be out of date.` : "");
  const missing = byId("banner-missing");
  missing.hidden = !store.missing.length;
  setText(missing, store.missing.length ? `Not shown, because it may not be read: ${store.missing.join(", ")}` : "");
}

function drawEmpty(current) {
  const shown = current === "lanes" ? lanes.rows.length : grid.blocks.length;
  // A few nodes without pods leave room to say what to do next.
  const isEmpty = shown === 0 || (!view.query && view.at === null && counts.pods === 0 && shown <= 3);
  byId("empty").hidden = current === "plan" || !isEmpty || !store.isSynced;
  const isForbidden = store.missing.some((each) => each.startsWith("pods ("));
  setText(byId("empty-title"), view.query ? `Nothing matches “${view.query}”` : isForbidden ? "Pods may not be read" : "No pods yet");
  setText(byId("empty-text"), view.query ? "Press Esc in the search field to show everything."
    : isForbidden ? "Ask for the role view, or start podlife ui with -n and a namespace that you may read." : "Create one, and its life appears here:");
  byId("empty-command").hidden = Boolean(view.query) || isForbidden;
}

let isPending = false;
let timer = 0;

/** Ask for a frame; `force` rebuilds the rows in it. */
function draw(force = false) {
  if (force) lanes.builtAt = grid.builtAt = counted = -Infinity;
  if (isPending) return;
  isPending = true;
  requestAnimationFrame(frame);
}

function frame() {
  isPending = false;
  clearTimeout(timer);
  const isMoving = timebar.tick();
  count();
  const current = mode();
  for (const each of MODES) {
    byId(each).hidden = each !== current;
    byId(`mode-${each}`).setAttribute("aria-pressed", String(each === current));
  }
  if (shownMode !== current) plan.show(current === "plan");
  shownMode = current;
  byId("group").disabled = current !== "lanes";
  if (current === "lanes") lanes.draw();
  if (current === "grid") grid.draw();
  timebar.draw();
  drawState();
  drawEmpty(current);
  // Half a pixel at a time looks smooth, and a long span costs almost nothing.
  const pace = timebar.speed ? 0 : current === "lanes" ? lanes.pace / 2 : 500;
  if (isMoving) timer = setTimeout(draw, Math.min(1000, pace));
}
let shownMode = "";

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("podlife-theme", theme);
  themed();
}

function themed() {
  readTheme();
  byId("legend").replaceChildren(...Object.entries(POD_STATES).map(([state, word]) => {
    const canvas = h("canvas", { "aria-hidden": "true" });
    paintState(prepare(canvas, 22, 12), state, 0, 0, 22, 12);
    return h("li", {}, canvas, word);
  }));
  draw();
}

const KEYS = {
  "/": () => byId("search").focus(), l: () => setMode("lanes"), g: () => setMode("grid"), p: () => setMode("plan"),
  n: () => timebar.follow(), "+": () => timebar.zoom(0.5), "-": () => timebar.zoom(2), t: () => byId("theme").click(),
  s: () => setQuery(view.query === "stuck" ? "" : "stuck"), "?": () => byId("help").showModal(),
  "[": () => timebar.pan(-view.span / 10), "]": () => timebar.pan(view.span / 10),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range" && event.target.type !== "checkbox";
  if (event.key === "Escape") {
    if (event.target.id === "search" && view.query) setQuery("");
    else if (view.selected) select("");
    else if (view.query) setQuery("");
    event.target.id === "search" && event.target.blur();
  } else if (event.key === "ArrowDown" && (event.target === document.body || event.target.id === "search")) {
    if (mode() === "lanes") lanes.focusRow(lanes.indexes?.get(lanes.current) ?? 0);
    else byId("grid-scroll").focus();
  } else if (!isTyping && KEYS[event.key]) {
    KEYS[event.key]();
  } else {
    return;
  }
  event.preventDefault();
}

function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = localStorage.getItem("podlife-theme") || "";
  dark.addEventListener("change", themed);
  const theme = () => document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
  byId("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  for (const each of MODES) byId(`mode-${each}`).addEventListener("click", () => setMode(each));
  byId("search").addEventListener("input", (event) => setQuery(event.target.value));
  byId("group").addEventListener("change", (event) => {
    view.group = event.target.value;
    remember();
    draw(true);
  });
  byId("count-stuck").addEventListener("click", () => setQuery(view.query === "stuck" ? "" : "stuck"));
  byId("count-failed").addEventListener("click", () => setQuery(view.query === "state:failed" ? "" : "state:failed"));
  byId("count-all").addEventListener("click", () => setQuery(""));
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("help-close").addEventListener("click", () => byId("help").close());
  addEventListener("keydown", onKey);
  new ResizeObserver(() => draw(true)).observe(byId("content"));
  recall();
  themed();
  store.listen((changed) => {
    panel.changed(changed);
    if (wanted && store.lives.has(wanted)) {
      select(wanted);
      wanted = "";
    }
    // The complete picture is shown at once; later changes of rows wait for their pace.
    draw(store.isSynced && !wasSynced);
    wasSynced = store.isSynced;
  });
  store.connect();
}

start();

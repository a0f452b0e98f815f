// The page: what is shown, the keyboard, the theme, and one loop that draws when something changed or time moved by a pixel.
import { paintConcluded } from "./bars.js";
import { announce, byId, h, plural, setText } from "./dom.js";
import { Grid } from "./grid.js";
import { Lanes } from "./lanes.js";
import { POD_STATES, existsAt, stateAt, stuckAt } from "./life.js";
import { paintState, prepare, readTheme } from "./paint.js";
import { Panel } from "./panel.js";
import { PlanView } from "./plan.js";
import { compile, problemOf } from "./search.js";
import { Store } from "./store.js";
import { Timebar, boundedSpan } from "./timebar.js";
import { Tooltip } from "./tooltip.js";

const MANY_PODS = 300;
const MODES = ["lanes", "grid", "plan"];
const GROUPS = ["node", "owner", "namespace"];
const SPAN_MS = 300000;

const store = new Store();
// `at` is null while now is followed; `mode` is empty until somebody chooses.
const view = { mode: "", group: "node", query: "", matches: null, span: SPAN_MS, at: null, selected: "" };

const tooltip = new Tooltip();
const timebar = new Timebar({ store, view, changed: () => draw(), remember: rememberSoon });
const panel = new Panel({ store, view, close: () => select("") });
const lanes = new Lanes({ store, view, select, tooltip, pan: (ms) => timebar.pan(ms), zoom: (factor) => timebar.zoom(factor) });
const grid = new Grid({ store, view, zoomTo, tooltip });
const plan = new PlanView({ store, view, select });

/** Lanes or grid, by the number of pods, until the user chooses. */
function mode() {
  // A recording has no collector to ask.
  if (view.mode && !(view.mode === "plan" && store.isReplay)) return view.mode;
  // Back to lanes only well below the limit: a cluster at the limit does not flicker.
  isCrowd = counts.pods > (isCrowd ? MANY_PODS / 2 : MANY_PODS);
  return isCrowd && !view.query ? "grid" : "lanes";
}
let isCrowd = false;

function setMode(next) {
  if (next === "plan" && store.isReplay) return;
  view.mode = next;
  tooltip.hide();
  remember(true);
  draw(true);
}

function setQuery(query) {
  applyQuery(query);
  rememberSoon();
}

function applyQuery(query) {
  view.query = query.slice(0, 200);
  view.matches = compile(view.query);
  if (byId("search").value !== query) byId("search").value = view.query;
  draw(true);
}

/** Open the panel of a life, or close it. What was opened is a step in the browser's history: Back closes it. */
function select(uid) {
  if (uid && !store.lives.has(uid)) return announce("this pod is no longer known");
  const [isStep, isSpare] = [Boolean(uid) && !view.selected, !uid && Boolean(view.selected)];
  wanted = "";
  show(uid);
  remember(isStep, isSpare || undefined);
}

function show(uid) {
  const back = panel.root.contains(document.activeElement) && !uid;
  view.selected = uid;
  tooltip.hide();
  if (uid) panel.show(uid);
  else panel.hide();
  draw();
  if (back && mode() === "lanes") lanes.focusRow(lanes.indexes?.get(lanes.current) ?? 0);
}

function zoomTo(node, uid) {
  view.group = "node";
  byId("group").value = "node";
  applyQuery(node ? `node:${node}` : "node: kind:pod");
  setMode("lanes");
  if (uid) select(uid);
}

/** The address keeps the view, so that a reload or a link shows the same. A step is one that Back takes back. */
function remember(isStep = false, isSpare = Boolean(history.state?.isSpare)) {
  clearTimeout(remembering);
  const kept = new URLSearchParams();
  for (const name of ["mode", "group", "query"]) if (view[name]) kept.set(name, view[name]);
  if (view.selected || wanted) kept.set("selected", view.selected || wanted);
  if (view.span !== SPAN_MS) kept.set("span", view.span / 1000);
  if (`#${kept}` === location.hash) return;
  // A panel that was closed leaves an entry that differs from the one before in nothing: the next step takes it.
  if (isStep && !history.state?.isSpare) history.pushState(null, "", `#${kept}`);
  else history.replaceState({ isSpare: isSpare && !isStep }, "", `#${kept}`);
}

/** Browsers refuse many changes of the address in a short time: typing and zooming are remembered when they pause. */
function rememberSoon() {
  clearTimeout(remembering);
  remembering = setTimeout(remember, 300);
}

function recall() {
  clearTimeout(remembering);
  const kept = new URLSearchParams(location.hash.slice(1));
  const choice = (name, known) => (known.includes(kept.get(name)) ? kept.get(name) : "");
  view.mode = choice("mode", MODES);
  view.group = choice("group", GROUPS) || "node";
  view.span = boundedSpan(Number(kept.get("span")) * 1000) || SPAN_MS;
  byId("group").value = view.group;
  wanted = kept.get("selected") || "";
  applyQuery(kept.get("query") || "");
  if (!wanted && view.selected) show("");
  recallSelected();
}

/** After a reload the life that was selected comes with the stream. */
function recallSelected() {
  if (!wanted || !store.lives.has(wanted)) return;
  const uid = wanted;
  wanted = "";
  if (uid !== view.selected) show(uid);
}

let wanted = "";
let remembering = 0;
let wasSynced = false;
let counts = { pods: 0, nodes: 0, stuck: 0, stuckNodes: 0, failed: 0 };
let counted = 0;
let countedAt = null;

function count() {
  // Ten thousand lives are counted a few times a second, or when the time that is shown was moved.
  if (view.at === countedAt && performance.now() - counted < 300) return;
  countedAt = view.at;
  counted = performance.now();
  const at = view.at ?? store.now();
  const next = { pods: 0, nodes: 0, stuck: 0, stuckNodes: 0, failed: 0 };
  for (const life of store.lives.values()) {
    if (!existsAt(life, at)) continue;
    next[life.kind === "node" ? "nodes" : "pods"]++;
    if (stuckAt(life, at)) next[life.kind === "node" ? "stuckNodes" : "stuck"]++;
    if (life.kind === "pod" && stateAt(life, at) === "failed") next.failed++;
  }
  counts = next;
  setText(byId("count-all"), `${plural(counts.pods, "pod")} · ${plural(counts.nodes, "node")}`);
  document.title = counts.stuck ? `${counts.stuck} stuck · podlife` : "podlife";
  setText(byId("count-stuck"), `${counts.stuck.toLocaleString("en")} stuck${counts.stuckNodes ? ` · ${plural(counts.stuckNodes, "node")}` : ""}`);
  setText(byId("count-failed"), `${counts.failed.toLocaleString("en")} failed`);
  byId("count-stuck").classList.toggle("bad", counts.stuck + counts.stuckNodes > 0);
}

const CONNECTIONS = {
  connecting: "connecting", connected: "live", lost: "connection lost, retrying",
  denied: "access denied: open the address that podlife ui printed",
};

function drawState() {
  const connection = store.connection !== "connected" ? CONNECTIONS[store.connection]
    : !store.isLive ? "the API server does not respond" : !store.isSynced ? "reading the cluster" : store.isReplay ? "replay" : "live";
  const element = byId("connection");
  const isReading = store.connection === "connecting" || (store.connection === "connected" && store.isLive && !store.isSynced);
  element.dataset.state = isReading ? "" : store.connection === "connected" && store.isLive ? "good" : "bad";
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

/** How much a search found, or what is wrong with it. */
function drawFound(current) {
  const shown = current === "grid" ? grid.blocks : lanes.rows;
  const key = `${view.query}|${current}`;
  if (shown === found.shown && key === found.key) return;
  found = { shown, key };
  const problem = problemOf(view.query);
  byId("found").classList.toggle("bad", Boolean(problem));
  if (!view.matches || problem || current === "plan") return setText(byId("found"), problem);
  const at = view.at ?? store.now();
  const nodes = (current === "grid" ? grid.blocks.map((each) => each.node) : lanes.rows.map((row) => row.type === "node" && row.lives.at(-1)))
    .filter((node) => node && view.matches(node, at)).length;
  const pods = current === "grid" ? grid.blocks.reduce((sum, each) => sum + each.pods.length, 0) : lanes.rows.filter((row) => row.type === "pod").length;
  setText(byId("found"), [plural(pods, "pod"), nodes && plural(nodes, "node")].filter(Boolean).join(" · "));
}
let found = { shown: null, key: "" };

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
  // Lanes and grid are drawn when the first picture is complete: a part of it would be drawn again and again.
  hasPicture ||= store.isSynced;
  if (!hasPicture) return drawState();
  const isMoving = timebar.tick();
  count();
  const current = mode();
  for (const each of MODES) {
    byId(each).hidden = each !== current;
    byId(`mode-${each}`).setAttribute("aria-pressed", String(each === current));
  }
  byId("mode-plan").hidden = store.isReplay;
  if (shownMode !== current) {
    plan.show(current === "plan");
    // What is not shown does not keep lives that are gone.
    if (current !== "grid") grid.clear();
    if (current !== "lanes") lanes.clear();
  }
  shownMode = current;
  byId("group").disabled = current !== "lanes";
  if (current === "lanes") lanes.draw();
  if (current === "grid") grid.draw();
  if (current === "plan") plan.drawNote();
  panel.changed();
  timebar.draw();
  drawState();
  drawFound(current);
  drawEmpty(current);
  // Half a pixel at a time looks smooth, and a long span costs almost nothing.
  const pace = timebar.speed ? 0 : current === "lanes" ? lanes.pace / 2 : 500;
  const isStale = (current === "lanes" && lanes.isStale) || (current === "grid" && grid.isStale);
  if (isMoving || isStale) timer = setTimeout(draw, Math.min(isStale ? 250 : 1000, isMoving ? pace : 250));
}
let shownMode = "";
let hasPicture = false;

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("podlife-theme", theme);
  themed();
}

function themed() {
  readTheme();
  const sample = (paint, state, word) => {
    const canvas = h("canvas", { "aria-hidden": "true" });
    paint(prepare(canvas, 22, 12), state, 0, 0, 22, 12);
    return h("li", {}, canvas, word);
  };
  const states = Object.entries(POD_STATES).map(([state, word]) => sample(paintState, state, word));
  byId("legend").replaceChildren(...states, sample(paintConcluded, "ready", "lighter: concluded, not seen"));
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
    remember(true);
    draw(true);
  });
  byId("count-stuck").addEventListener("click", () => setQuery(view.query === "stuck" ? "" : "stuck"));
  byId("count-failed").addEventListener("click", () => setQuery(view.query === "state:failed" ? "" : "state:failed"));
  byId("count-all").addEventListener("click", () => setQuery(""));
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("help-close").addEventListener("click", () => byId("help").close());
  addEventListener("keydown", onKey);
  addEventListener("popstate", recall);
  new ResizeObserver(() => draw(true)).observe(byId("content"));
  recall();
  themed();
  store.listen(() => {
    recallSelected();
    // The complete picture is shown at once; later changes of rows wait for their pace.
    draw(store.isSynced && !wasSynced);
    wasSynced = store.isSynced;
  });
  store.connect();
}

start();

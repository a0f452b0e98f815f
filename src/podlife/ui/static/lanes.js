// The lanes: one row per name, time to the right. Only visible rows exist as elements; their bars are drawn on one canvas.
//
// Labels are buttons with the whole story as their accessible name. Up and down move between rows, left and right step through what is
// drawn on the row, Enter opens it.
import { paintAxis, paintRow } from "./bars.js";
import { announce, byId, h, plural, setAttribute, setText } from "./dom.js";
import { describe, momentText, restartsAt, stateAt, stateWord, stuckAt } from "./life.js";
import { colours, prepare } from "./paint.js";
import { buildRows } from "./rows.js";

const AXIS = 24;
const FUTURE = 0.3;
// Rows follow changes of membership at this pace; states follow every change. Time alone moves ended lives out of the window, and changes of
// state in and out of a search.
const [REBUILD_MS, TIMELY_MS, SELDOM_MS] = [250, 2000, 10000];
// Labels count seconds: they are written again at this pace, and when their life has changed.
const LABEL_MS = 500;

export class Lanes {
  /**
   * @param {{store: import("./store.js").Store, view: any, select: (uid: string) => void, pan: (ms: number) => void,
   *   zoom: (factor: number) => void, tooltip: import("./tooltip.js").Tooltip}} parts
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.root = byId("lanes");
    this.scroller = byId("lanes-scroll");
    this.list = byId("lanes-list");
    this.canvas = byId("lanes-canvas");
    /** @type {import("./rows.js").Row[]} */
    this.rows = [];
    /** @type {Map<string, {element: HTMLElement, life: object|null, stamp: string}>} */
    this.labels = new Map();
    this.hits = new Map();
    this.current = "";
    // What was stepped to: its key, and its time should it not be drawn any more.
    this.step = null;
    this.builtAt = -Infinity;
    this.built = "";
    this.scroller.addEventListener("scroll", () => this.redraw(), { passive: true });
    this.list.addEventListener("keydown", (event) => this.onKey(event));
    this.list.addEventListener("focusin", (event) => {
      if (this.current !== event.target.dataset.key) this.step = null;
      this.current = event.target.dataset.key;
    });
    this.scroller.addEventListener("pointermove", (event) => this.onPoint(event));
    this.scroller.addEventListener("pointerleave", () => this.tooltip.hide());
    this.scroller.addEventListener("pointerdown", (event) => this.onDrag(event));
    this.scroller.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
  }

  get isNarrow() {
    return this.root.clientWidth < 560;
  }

  /** Sizes that depend on the width: on a narrow page a label stands above its bar. */
  layout() {
    const width = this.root.clientWidth;
    const narrow = this.isNarrow;
    const label = narrow ? 0 : Math.min(260, Math.round(width * 0.24));
    const plot = Math.max(60, width - label - 14);
    return narrow
      ? { label, plot, row: 58, text: 33, bar: 38, barHeight: 13 }
      : { label, plot, row: 38, text: 13, bar: 18, barHeight: 13 };
  }

  /** Milliseconds per pixel: how often a moving now is worth a new frame. */
  get pace() {
    return this.view.span / this.layout().plot;
  }

  rebuild() {
    const { store, view } = this;
    const at = view.at ?? store.now();
    const key = `${store.structure}|${view.group}|${view.query}|${view.span}|${view.at}`;
    const age = performance.now() - this.builtAt;
    const isOther = key !== this.built;
    this.isStale = isOther && age < REBUILD_MS;
    if (age < (isOther ? REBUILD_MS : this.isTimely ? TIMELY_MS : SELDOM_MS)) return;
    this.built = key;
    this.builtAt = performance.now();
    this.rows = buildRows(store.lives.values(), { group: view.group, matches: view.matches, from: at - view.span * (1 - FUTURE), at });
    this.indexes = new Map(this.rows.map((row, i) => [row.key, i]));
    this.isTimely = view.matches !== null || this.rows.some((row) => row.lives.some((life) => life.to !== null));
  }

  clear() {
    this.rows = [];
    this.indexes = new Map();
    this.builtAt = -Infinity;
  }

  /** With the next frame, unless something else draws before. */
  redraw() {
    this.isDue = true;
    requestAnimationFrame(() => this.isDue && this.draw());
  }

  draw() {
    this.isDue = false;
    this.rebuild();
    const size = this.layout();
    const [width, height] = [this.root.clientWidth, this.scroller.clientHeight];
    this.list.style.height = `${this.rows.length * size.row}px`;
    // Read once, before labels change: afterwards it would cost a layout.
    this.top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(this.top / size.row));
    const last = Math.min(this.rows.length, Math.ceil((this.top + height) / size.row) + 1);
    this.drawLabels(first, last, size);
    this.drawCanvas(first, last, size, width, height);
  }

  drawLabels(first, last, size) {
    const at = this.view.at ?? this.store.now();
    if (!this.indexes?.has(this.current)) this.current = this.rows.find((row) => row.type !== "group")?.key || "";
    const shown = [];
    for (let i = first; i < last; i++) shown.push(i);
    // The focused row stays, wherever it is: removing it would lose the keyboard's place.
    const focused = this.indexes?.get(document.activeElement?.dataset.key);
    if (focused < first) shown.unshift(focused);
    else if (focused >= last) shown.push(focused);
    const keys = new Set(shown.map((i) => this.rows[i].key));
    for (const [key, { element }] of this.labels) {
      if (keys.has(key)) continue;
      element.remove();
      this.labels.delete(key);
    }
    // From the bottom up, each before the one below it: screen readers read them in their order.
    let below = null;
    for (const i of shown.reverse()) {
      const row = this.rows[i];
      let label = this.labels.get(row.key);
      if (!label) this.labels.set(row.key, (label = { element: this.createLabel(row), life: null, stamp: "" }));
      const { element } = label;
      this.place(element, below);
      below = element;
      const life = row.type === "group" ? row : this.lifeOf(row);
      const stamp = [i, size.row, size.label, this.rows.length, row.count, row.lives.length, row.key === this.current, this.view.selected,
        this.view.at === null, Math.round(at / LABEL_MS)].join();
      if (label.life === life && label.stamp === stamp) continue;
      Object.assign(label, { life, stamp });
      element.style.top = `${i * size.row}px`;
      element.style.height = `${size.row}px`;
      element.style.width = size.label ? `${size.label}px` : "";
      setAttribute(element, "aria-posinset", String(i + 1));
      setAttribute(element, "aria-setsize", String(this.rows.length));
      this.updateLabel(element, row, life, at);
    }
  }

  /** A row that moved to another group takes the focus along. */
  place(element, below) {
    if (element.parentNode && element.nextSibling === below) return;
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    this.list.insertBefore(element, below);
    focused?.focus({ preventScroll: true });
  }

  createLabel(row) {
    const name = h("span", { class: "name" });
    const note = h("span", { class: "note" });
    const inner = row.type === "group" ? h("span", { class: "label group" }, name, note)
      : h("button", { class: `label ${row.type}`, type: "button", "data-key": row.key, onclick: () => this.open(row.key) }, name, note);
    return h("div", { role: "listitem", class: `row ${row.type}` }, inner);
  }

  updateLabel(element, row, life, at) {
    const inner = element.firstElementChild;
    const [name, note] = inner.children;
    setText(name, row.title);
    if (row.type === "group") {
      setText(note, row.title === "Nodes" ? "" : plural(row.count, "pod"));
      return;
    }
    const isPresent = this.view.at === null;
    const restarts = row.type === "pod" ? restartsAt(life, at) : 0;
    const state = life.to !== null && life.to <= at ? "gone" : stateWord(life, stateAt(life, at));
    const facts = [row.type === "node" ? plural(row.count, "pod") : "", isPresent && life.to === null ? life.stage || state : state,
      row.type === "pod" && isPresent ? life.ready : "", restarts ? `↻${restarts}` : "", row.lives.length > 1 ? `life ${row.lives.length}` : ""];
    setText(note, (row.type === "node" && this.view.group !== "node" ? facts.slice(1) : facts).filter(Boolean).join(" · "));
    setAttribute(inner, "aria-label", describe(life, at, isPresent) + (row.lives.length > 1 ? `, life ${row.lives.length} under this name` : ""));
    setAttribute(inner, "tabindex", row.key === this.current ? "0" : "-1");
    setAttribute(inner, "aria-current", row.lives.some((each) => each.uid === this.view.selected) ? "true" : "false");
    inner.classList.toggle("stuck", stuckAt(life, at) !== "");
  }

  lifeOf(row) {
    const at = this.view.at ?? this.store.now();
    // Rows are rebuilt seldom: the store has the newest form of a life.
    row.lives = row.lives.map((life) => this.store.lives.get(life.uid) || life);
    return row.lives.findLast((life) => life.from <= at) || row.lives[0];
  }

  drawCanvas(first, last, size, width, height) {
    const { view, store } = this;
    const now = store.now();
    const at = view.at ?? now;
    const ctx = prepare(this.canvas, width, height + AXIS);
    const nowX = size.plot * (1 - FUTURE);
    const scale = size.plot / view.span;
    const x = (t) => nowX + (t - at) * scale;
    const place = { x, width: size.plot, nowX, at, now, started: store.hello?.started ?? 0, y: 0, text: 0, bar: 0, barHeight: size.barHeight };
    ctx.translate(size.label, 0);
    this.geometry = { ...place, label: size.label, row: size.row };
    this.drawBands(ctx, first, last, size, height);
    paintAxis(ctx, place, view.span, height + AXIS, view.at !== null ? "" : store.isReplay ? "end of the recording" : "now");
    ctx.beginPath();
    ctx.rect(0, AXIS, size.plot, height);
    ctx.clip();
    this.hits.clear();
    for (let i = first; i < last; i++) {
      const y = AXIS + i * size.row - this.top;
      const hits = [];
      paintRow(ctx, { ...place, y, text: y + size.text, bar: y + size.bar }, this.rows[i], hits);
      this.hits.set(this.rows[i].key, hits);
    }
  }

  drawBands(ctx, first, last, size, height) {
    for (let i = first; i < last; i++) {
      const y = AXIS + i * size.row - this.top;
      if (this.rows[i].type !== "pod") {
        ctx.fillStyle = colours.band;
        ctx.fillRect(-size.label, Math.max(y, AXIS), size.label + size.plot + 14, Math.min(size.row, y + size.row - AXIS));
      }
      if (this.rows[i].lives.some((life) => life.uid === this.view.selected)) {
        ctx.globalAlpha = 0.1;
        ctx.fillStyle = colours.accent;
        ctx.fillRect(0, Math.max(y, AXIS), size.plot + 14, Math.min(size.row, y + size.row - AXIS));
        ctx.globalAlpha = 1;
      }
      ctx.fillStyle = colours.line;
      if (y > AXIS) ctx.fillRect(-size.label, y, size.label + size.plot + 14, 0.5);
    }
    // What lies ahead has a ground of its own.
    ctx.globalAlpha = 0.06;
    ctx.fillStyle = colours.accent;
    ctx.fillRect(size.plot * (1 - FUTURE), AXIS, size.plot * FUTURE + 14, height);
    ctx.globalAlpha = 1;
  }

  open(key) {
    const row = this.rows[this.indexes.get(key)];
    if (!row || row.type === "group") return;
    this.current = key;
    this.select(this.lifeOf(row).uid);
  }

  focusRow(index, direction = 1) {
    let i = Math.max(0, Math.min(index, this.rows.length - 1));
    while (this.rows[i]?.type === "group") i += direction;
    const row = this.rows[i];
    if (!row) return;
    this.current = row.key;
    this.step = null;
    this.tooltip.hide();
    const size = this.layout().row;
    const [top, height] = [i * size, this.scroller.clientHeight];
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + size > this.scroller.scrollTop + height) this.scroller.scrollTop = top + size - height;
    this.draw();
    this.labels.get(row.key)?.element.querySelector("button")?.focus({ preventScroll: true });
  }

  onKey(event) {
    const index = this.indexes?.get(this.current) ?? 0;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.layout().row) - 1);
    const moves = {
      ArrowDown: [index + 1, 1], ArrowUp: [index - 1, -1], PageDown: [index + page, 1], PageUp: [index - page, -1],
      Home: [0, 1], End: [this.rows.length - 1, -1],
    };
    if (moves[event.key]) this.focusRow(...moves[event.key]);
    else if (event.key === "ArrowRight") this.stepBy(1);
    else if (event.key === "ArrowLeft") this.stepBy(-1);
    else return;
    event.preventDefault();
  }

  /** Show what is drawn on the current row, one thing after the other, as if it was pointed at: at first the oldest, or going left what was before now. */
  stepBy(direction) {
    const seen = new Set();
    const hits = (this.hits.get(this.current) || []).filter((hit) => !seen.has(hit.key) && seen.add(hit.key)).sort((a, b) => a.x - b.x);
    if (!hits.length) return;
    const middle = (hit) => hit.x + hit.w / 2;
    const { nowX, at, width, x } = this.geometry;
    const found = hits.findIndex((hit) => hit.key === this.step?.key);
    const before = hits.filter((hit) => middle(hit) < (this.step ? x(this.step.t) : nowX)).length;
    const next = found >= 0 ? found + direction : direction < 0 ? before - 1 : this.step ? before : 0;
    const hit = hits[Math.max(0, Math.min(next, hits.length - 1))];
    this.step = { key: hit.key, t: at + (middle(hit) - nowX) * (this.view.span / width) };
    const box = this.canvas.getBoundingClientRect();
    const lines = hit.lines();
    this.tooltip.show(lines, box.left + this.geometry.label + hit.x + hit.w / 2, box.top + hit.y + hit.h);
    announce(lines.slice(1).join(". "));
  }

  /** What lies under the pointer: a mark or a prediction, otherwise the state at that time. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left - (this.geometry?.label ?? 0);
    const y = event.clientY - box.top;
    const row = this.rows[Math.floor((y - AXIS + this.scroller.scrollTop) / this.geometry.row)];
    if (!row || x < 0) return null;
    const hit = (this.hits.get(row.key) || []).find((each) => x >= each.x && x <= each.x + each.w && y >= each.y && y <= each.y + each.h);
    if (hit) return hit;
    const t = this.geometry.at + (x - this.geometry.nowX) * (this.view.span / this.geometry.width);
    const life = row.lives.find((each) => each.from <= t && t <= Math.min(each.to ?? Infinity, this.geometry.at));
    return life ? { uid: life.uid, lines: () => momentText(life, t, this.geometry.at) } : null;
  }

  onPoint(event) {
    if (!this.geometry || event.buttons || event.target.closest("button")) return this.tooltip.hide();
    const found = this.at(event);
    this.scroller.classList.toggle("pointing", Boolean(found));
    if (found) this.tooltip.show(found.lines(), event.clientX, event.clientY + 14);
    else this.tooltip.hide();
  }

  /** Drag to move in time; a press without a movement opens what is there. */
  onDrag(event) {
    if (event.button !== 0 || event.target.closest("button") || event.offsetX > this.scroller.clientWidth) return;
    let [x, moved] = [event.clientX, 0];
    const move = (next) => {
      moved += Math.abs(next.clientX - x);
      if (moved > 4) this.pan((x - next.clientX) * (this.view.span / this.geometry.width));
      x = next.clientX;
    };
    const up = (end) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
      const found = moved <= 4 && end.type === "pointerup" && this.at(end);
      if (found) this.select(found.uid);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
  }

  onWheel(event) {
    if (event.ctrlKey) this.zoom(event.deltaY > 0 ? 1.25 : 0.8);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) * this.pace);
    else return;
    event.preventDefault();
  }
}

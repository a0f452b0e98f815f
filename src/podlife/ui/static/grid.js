// The grid: every node is a block, every pod a cell, for thousands of them. A click zooms into the lanes of the node.
//
// The arrow keys move between nodes as they lie on the page; with Shift, left and right move between the pods of one. A line below tells what
// is there.
import { byId, plural, setText } from "./dom.js";
import { describe, existsAt, fullName, stateAt, stuckAt } from "./life.js";
import { colours, fit, paintCells, paintState, prepare } from "./paint.js";
import { sortKey } from "./rows.js";

// Size of a cell, and of what stands above it: a name and the node's state, or with very many nodes the state alone.
const SIZES = [[18, 18], [15, 18], [12, 18], [10, 18], [9, 5], [8, 5], [7, 5], [6, 5]];
// Blocks follow changes of membership at this pace; time alone changes only what a search finds.
const [REBUILD_MS, TIMELY_MS, SELDOM_MS] = [250, 1000, 10000];

export class Grid {
  /** @param {{store: import("./store.js").Store, view: any, zoomTo: (node: string, uid: string) => void, tooltip: import("./tooltip.js").Tooltip}} parts */
  constructor(parts) {
    Object.assign(this, parts);
    this.root = byId("grid");
    this.scroller = byId("grid-scroll");
    this.spacer = byId("grid-spacer");
    this.canvas = byId("grid-canvas");
    this.blocks = [];
    this.current = { block: 0, cell: -1 };
    this.builtAt = -Infinity;
    this.built = "";
    this.scroller.addEventListener("scroll", () => this.redraw(), { passive: true });
    this.scroller.addEventListener("pointermove", (event) => this.onPoint(event));
    this.scroller.addEventListener("pointerleave", () => this.tooltip.hide());
    this.scroller.addEventListener("click", (event) => this.onClick(event));
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    this.scroller.addEventListener("focus", () => this.draw());
    this.scroller.addEventListener("blur", () => this.draw());
  }

  rebuild() {
    const { store, view } = this;
    const key = `${store.structure}|${view.query}|${view.at}|${this.root.clientWidth}x${this.scroller.clientHeight}`;
    const age = performance.now() - this.builtAt;
    const isOther = key !== this.built;
    this.isStale = isOther && age < REBUILD_MS;
    if (age < (isOther ? REBUILD_MS : view.matches ? TIMELY_MS : SELDOM_MS)) return;
    this.built = key;
    this.builtAt = performance.now();
    const at = view.at ?? store.now();
    const blocks = new Map();
    const block = (name) => blocks.get(name) || blocks.set(name, { name, sort: sortKey(name), node: null, pods: [] }).get(name);
    for (const life of store.lives.values()) {
      if (!existsAt(life, at)) continue;
      if (life.kind === "node") block(life.name).node = life;
      else if (!view.matches || view.matches(life, at)) block(life.node || "").pods.push(life);
    }
    this.blocks = [...blocks.values()]
      .filter((each) => each.pods.length || (each.node && (!view.matches || view.matches(each.node, at))))
      .sort((a, b) => (a.sort < b.sort ? -1 : 1));
    for (const each of this.blocks) each.pods.sort((a, b) => (a.sort < b.sort ? -1 : 1));
    this.current.block = Math.min(this.current.block, Math.max(0, this.blocks.length - 1));
    this.arrange();
  }

  clear() {
    this.blocks = [];
    this.builtAt = -Infinity;
  }

  /** The largest cells with which everything fits on the page, or the smallest ones and scrolling. */
  arrange() {
    const [width, height] = [this.root.clientWidth - 24, this.scroller.clientHeight];
    const most = Math.max(4, ...this.blocks.map((each) => Math.min(each.pods.length, 60)));
    for (const [cell, head] of SIZES) {
      const gap = head > 5 ? 10 : 6;
      const lines = Math.ceil(most / Math.min(Math.ceil(Math.sqrt(most * 2.2)), 14));
      const columns = Math.ceil(most / lines);
      Object.assign(this, { cell, head, gap, columns });
      this.blockWidth = Math.max(columns * cell, head > 5 ? 52 : 0) + gap;
      this.perRow = Math.max(1, Math.floor((width + gap) / this.blockWidth));
      let y = 8;
      for (let i = 0; i < this.blocks.length; i += this.perRow) {
        const line = this.blocks.slice(i, i + this.perRow);
        const rows = Math.max(1, ...line.map((each) => Math.ceil(each.pods.length / columns)));
        line.forEach((each, j) => Object.assign(each, { x: 12 + j * this.blockWidth, y, h: rows * cell + head }));
        y += rows * cell + head + gap;
      }
      this.height = y;
      if (y <= height) break;
    }
    this.spacer.style.height = `${this.height}px`;
  }

  /** With the next frame, unless something else draws before. */
  redraw() {
    this.isDue = true;
    requestAnimationFrame(() => this.isDue && this.draw());
  }

  draw() {
    this.isDue = false;
    this.rebuild();
    const { store, view, cell } = this;
    const at = view.at ?? store.now();
    const [width, height, top] = [this.root.clientWidth, this.scroller.clientHeight, this.scroller.scrollTop];
    const ctx = prepare(this.canvas, width, height);
    const current = document.activeElement === this.scroller ? this.current : { block: -1, cell: -1 };
    // Cells of a state are painted together, then what frames some of them: thousands of changes of colour would cost more than the cells.
    const [places, frames] = [new Map(), []];
    this.blocks.forEach((block, index) => {
      const y = block.y - top;
      if (y + block.h < 0 || y > height) return;
      const node = block.node && (store.lives.get(block.node.uid) || block.node);
      this.drawHead(ctx, block, node, y, at, index === current.block && current.cell < 0);
      block.pods.forEach((old, i) => {
        const life = store.lives.get(old.uid) || old;
        const [cx, cy] = [block.x + (i % this.columns) * cell, y + this.head + Math.floor(i / this.columns) * cell];
        if (existsAt(life, at)) {
          const state = stateAt(life, at);
          (places.get(state) || places.set(state, []).get(state)).push([cx, cy]);
        }
        if (stuckAt(life, at)) frames.push([cx, cy, cell - 1.5, cell - 1.5, colours.danger, cell < 10 ? 1 : 2]);
        if (life.uid === view.selected) frames.push([cx - 1, cy - 1, cell + 0.5, cell + 0.5, colours.text, 2]);
        if (index === current.block && i === current.cell) frames.push([cx - 2, cy - 2, cell + 2.5, cell + 2.5, colours.accent, 2]);
      });
    });
    for (const [state, found] of places) paintCells(ctx, state, found, cell - 1.5);
    for (const each of frames) this.frame(ctx, ...each);
  }

  drawHead(ctx, block, node, y, at, isCurrent) {
    const width = this.blockWidth - this.gap;
    ctx.globalAlpha = node && stateAt(node, at) === "ready" ? 0.5 : 1;
    paintState(ctx, node ? stateAt(node, at) : "pending", block.x, y + this.head - 5, width - 1, 3);
    ctx.globalAlpha = 1;
    ctx.fillStyle = node && stuckAt(node, at) ? colours.danger : colours.muted;
    if (this.head > 5) ctx.fillText(fit(ctx, block.name || "no node", width), block.x, y + 9);
    if (isCurrent) this.frame(ctx, block.x - 3, y - 3, width + 6, block.h + 2, colours.accent, 2);
  }

  frame(ctx, x, y, w, hgt, colour, lineWidth) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = lineWidth;
    ctx.strokeRect(x, y, w, hgt);
  }

  /** The block and the life under a point of the page. */
  find(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop];
    const block = this.blocks.find((each) => x >= each.x && x < each.x + this.blockWidth && y >= each.y && y < each.y + each.h + this.gap);
    if (!block) return null;
    const [column, row] = [Math.floor((x - block.x) / this.cell), Math.floor((y - block.y - this.head) / this.cell)];
    const pod = row >= 0 && column < this.columns ? block.pods[row * this.columns + column] : null;
    return { block, life: pod || block.node };
  }

  tell(block, life) {
    const at = this.view.at ?? this.store.now();
    const now = life && (this.store.lives.get(life.uid) || life);
    return now ? describe(now, at, this.view.at === null) : `${block.name || "pods without a node"}: ${plural(block.pods.length, "pod")}`;
  }

  onPoint(event) {
    const found = this.find(event);
    if (!found) return this.tooltip.hide();
    const title = found.life ? fullName(found.life) : found.block.name || "no node";
    this.tooltip.show([title, ...this.tell(found.block, found.life).split(", ").slice(1, 9)], event.clientX, event.clientY + 12);
  }

  onClick(event) {
    const found = this.find(event);
    if (found) this.zoomTo(found.block.name, found.life?.kind === "pod" ? found.life.uid : "");
  }

  onKey(event) {
    const { current } = this;
    const block = this.blocks[current.block];
    if (!block) return;
    const last = this.blocks.length - 1;
    const side = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const line = { ArrowDown: this.perRow, ArrowUp: -this.perRow }[event.key];
    const target = { Home: 0, End: last }[event.key] ?? current.block + (side ?? line);
    if (event.shiftKey && side) current.cell = Math.max(-1, Math.min(current.cell + side, block.pods.length - 1));
    else if (this.blocks[target]) Object.assign(current, { block: target, cell: -1 });
    else if (!side && !line && event.key !== "Enter") return;
    event.preventDefault();
    if (event.key === "Enter") return this.zoomTo(block.name, block.pods[current.cell]?.uid || "");
    const shown = this.blocks[current.block];
    const [top, height] = [this.scroller.scrollTop, this.scroller.clientHeight];
    if (shown.y < top || shown.y + shown.h > top + height) this.scroller.scrollTop = shown.y - 10;
    setText(byId("grid-cell"), this.tell(shown, shown.pods[current.cell] || shown.node));
    this.draw();
  }
}

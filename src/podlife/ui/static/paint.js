// Colours and patterns on a canvas, the same for lanes, grid and legend. A state is never told by colour alone.

const NAMES = ["text", "muted", "line", "surface", "band", "accent", "danger", "pending", "init", "starting", "unready", "ready",
  "terminating", "held", "succeeded", "failed"];
const OF_NODES = { "not-ready": "failed", unknown: "unready", silent: "pending" };

/** @type {Record<string, string>} */
export let colours = {};
/** The page's font in the size of canvases. */
export let font = "";
const patterns = new Map();
const widths = new Map();
const fitted = new Map();
const MOST_TEXTS = 5000;

/** Read the colours of the current theme from the style sheet. */
export function readTheme() {
  const probe = document.createElement("i");
  document.body.append(probe);
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  colours = Object.fromEntries(NAMES.map((name) => [name, read(name)]));
  probe.remove();
  font = `11px ${getComputedStyle(document.body).fontFamily}`;
  for (const each of [patterns, widths, fitted]) each.clear();
}

/** A canvas for its size in CSS pixels; returns its context, cleared and without a clip. */
export function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== hgt) {
    canvas.width = w;
    canvas.height = hgt;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const ctx = canvas.getContext("2d");
  ctx.reset();
  ctx.scale(ratio, ratio);
  ctx.font = font;
  return ctx;
}

/** From a bounded map, or computed: most texts are drawn again in the next frame. */
function remembered(known, key, compute) {
  let found = known.get(key);
  if (found === undefined) {
    if (known.size >= MOST_TEXTS) known.clear();
    known.set(key, (found = compute()));
  }
  return found;
}

/** The width of a text in the page's font. */
export const measure = (ctx, text) => remembered(widths, text, () => ctx.measureText(text).width);

const STROKES = {
  terminating: [[[0, 8], [8, 0]]],
  held: [[[0, 8], [8, 0]], [[4, 8], [8, 4]], [[0, 4], [4, 0]]],
  failed: [[[0, 8], [8, 0]], [[0, 0], [8, 8]]],
  unready: [[[2, 4], [6, 4]]],
  init: [[[2, 2], [4, 2]], [[6, 6], [8, 6]]],
};

/** Lines over the colour of a state, as a repeating tile; null for plain ones. */
function patternOf(ctx, state) {
  if (!STROKES[state]) return null;
  let pattern = patterns.get(state);
  if (!pattern) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colours.surface;
    pen.lineWidth = state === "held" ? 1 : 1.5;
    for (const [[x0, y0], [x1, y1]] of STROKES[state]) {
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
    }
    pattern = ctx.createPattern(tile, "repeat");
    patterns.set(state, pattern);
  }
  return pattern;
}

/** The cells of the grid in one state. Its pattern is drawn to their size, and what is well steps back: trouble is what one looks for. */
export function paintCells(ctx, state, places, size) {
  const name = OF_NODES[state] || state;
  ctx.globalAlpha = name === "ready" ? 0.5 : 1;
  for (const [x, y] of places) paintState(ctx, state, x, y, size, size, false);
  ctx.globalAlpha = 1;
  if (!STROKES[name] || name === "init") return;
  ctx.strokeStyle = colours.surface;
  ctx.lineWidth = Math.max(0.7, size / 10);
  ctx.beginPath();
  for (const [x, y] of places) {
    for (const [[x0, y0], [x1, y1]] of STROKES[name]) {
      ctx.moveTo(x + (x0 * size) / 8, y + (y0 * size) / 8);
      ctx.lineTo(x + (x1 * size) / 8, y + (y1 * size) / 8);
    }
  }
  ctx.stroke();
}

/** One bar in the colour and pattern of its state. */
export function paintState(ctx, state, x, y, w, hgt, isPatterned = true) {
  const name = OF_NODES[state] || state;
  ctx.fillStyle = colours[name] || colours.pending;
  if (name === "pending") {
    // Hollow: nothing runs yet.
    ctx.globalAlpha *= 0.25;
    ctx.fillRect(x, y, w, hgt);
    ctx.globalAlpha /= 0.25;
    ctx.strokeStyle = colours.pending;
    ctx.lineWidth = 1;
    if (w > 2) ctx.strokeRect(x + 0.5, y + 0.5, w - 1, hgt - 1);
    return;
  }
  if (name === "succeeded") {
    ctx.fillRect(x, y + hgt * 0.3, w, hgt * 0.4);
    return;
  }
  ctx.fillRect(x, y, w, hgt);
  const pattern = isPatterned && patternOf(ctx, name);
  if (pattern && w > 3) {
    ctx.fillStyle = pattern;
    ctx.fillRect(x, y, w, hgt);
  }
}

/** Text cut to a width, with an ellipsis. */
export function fit(ctx, text, width) {
  if (width < 12) return "";
  if (measure(ctx, text) <= width) return text;
  return remembered(fitted, `${Math.floor(width)} ${text}`, () => cut(ctx, text, Math.floor(width)));
}

function cut(ctx, text, width) {
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ctx.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 2 ? `${text.slice(0, low).trimEnd()}…` : "";
}

// One row of the lanes on a canvas: states as bars, marks, the steps of a deletion, and what comes next to the right of now.
import { clockTime, duration } from "./dom.js";
import { MARKS, badConditions, fullName, isMissed, nextAt, predictionText, stuckAt } from "./life.js";
import { colours, fit, font, measure, paintState } from "./paint.js";

/**
 * The place of a row: `x(t)` in pixels, `y` its top, `at` the time that counts as now, `started` when the server began to watch.
 * @typedef {{x: (t: number) => number, width: number, nowX: number, at: number, now: number, started: number, y: number, text: number, bar: number, barHeight: number}} Place
 * @typedef {{x: number, y: number, w: number, h: number, uid: string, key: string, lines: () => string[]}} Hit what can be pointed at
 */

const NEAR = 9;

/** @param {Hit[]} hits filled with what was drawn */
export function paintRow(ctx, place, row, hits) {
  // From the right: the newest words get the room.
  let limit = place.nowX - 6;
  for (let i = row.lives.length - 1; i >= 0; i--) {
    paintBar(ctx, place, row.lives[i]);
    limit = paintMarks(ctx, place, row.lives[i], hits, limit, i > 0);
  }
  const life = row.lives.findLast((each) => each.from <= place.at);
  if (life && (life.to === null || life.to > place.at)) paintFuture(ctx, place, life, hits);
}

function paintBar(ctx, place, life) {
  const { x, at, bar, barHeight, width } = place;
  const end = life.to ?? Infinity;
  // A node's bar is thin: what runs on it stands out.
  const [top, height] = life.kind === "node" ? [bar + 3, barHeight - 6] : [bar, barHeight];
  const before = life.segs.length ? life.segs : [[life.from, ""]];
  before.forEach(([start, state], i) => {
    const stop = Math.min(before[i + 1]?.[0] ?? Infinity, end);
    const [x0, x1] = [Math.max(0, x(start)), Math.min(x(Math.min(stop, at)), width)];
    // A little over the next one: no seam between two states.
    const overlap = stop < at ? 0.6 : 0;
    if (start <= at && x1 > 0 && x0 < width) {
      const seen = Math.max(x0, Math.min(x(place.started), x1));
      if (seen > x0) paintConcluded(ctx, state, x0, top, seen - x0, height);
      if (seen < x1 || seen === x0) paintState(ctx, state, seen, top, Math.max(x1 - seen + overlap, 1.5), height);
    }
    // After the time that is looked at: what came of it, as a thin line.
    if (stop > at && at < place.now) {
      const [g0, g1] = [Math.max(x(Math.max(start, at)), 0), Math.min(x(Math.min(stop, place.now)), width)];
      if (g1 > g0) {
        ctx.globalAlpha = 0.5;
        paintState(ctx, state, g0, bar + barHeight / 2 - 1.5, g1 - g0, 3);
        ctx.globalAlpha = 1;
      }
    }
  });
}

/** Marks that would cover each other become one, drawn as the most important of them. */
function clusters(marks, place) {
  const found = [];
  for (const mark of marks) {
    if (mark[0] > place.at) break;
    const x = place.x(mark[0]);
    if (x < -20 || x > place.width) continue;
    const last = found[found.length - 1];
    if (last && x - last.x < NEAR) {
      last.marks.push(mark);
      if (importance(mark) >= importance(last.top)) last.top = mark;
    } else {
      found.push({ x, top: mark, marks: [mark] });
    }
  }
  return found;
}

const importance = (mark) => MARKS[mark[1]]?.[1] ?? 0;

/** @returns {number} where the room for words of earlier lives ends */
function paintMarks(ctx, place, life, hits, limit, isSecond) {
  const { bar, barHeight } = place;
  const middle = bar + barHeight / 2;
  paintKept(ctx, place, life, hits);
  const found = clusters(life.marks, place).map((each) => ({ ...each, words: each.marks.map((mark) => wordOf(mark, life, isSecond)).filter(Boolean) }));
  for (const { x, top, marks } of found) {
    const [glyph, rank] = MARKS[top[1]] || ["·", 0];
    paintGlyph(ctx, x, middle, glyph, rank, barHeight);
    hits.push({ x: x - 7, y: bar - 2, w: 14, h: barHeight + 4, uid: life.uid, key: `${life.uid} ${marks[0][0]}`, lines: () => markLines(life, marks) });
  }
  for (const { x, rank, label } of labelsOf(found).reverse()) {
    const w = measure(ctx, label);
    const left = Math.min(x - 4, limit - w);
    if (left < 0 || x - left > w + 8) continue;
    ctx.fillStyle = rank >= 8 ? colours.text : colours.muted;
    ctx.fillText(label, left, place.text);
    limit = left - 8;
  }
  return limit;
}

/** What is written above the marks: a word that repeats is written once, at its first mark, with how often. */
function labelsOf(found) {
  const labels = [];
  for (const { x, top, words } of found) {
    if (!words.length) continue;
    const word = [...new Set(words)].join(" · ");
    const last = labels.at(-1);
    if (last?.word === word) last.count += words.length;
    else labels.push({ x, word, count: words.length, rank: importance(top), isOne: new Set(words).size === 1 });
  }
  return labels.map((each) => ({ ...each, label: each.isOne && each.count > 1 ? `${each.word} ×${each.count}` : each.word }));
}

/** What was not observed but concluded: lighter, with an edge. */
export function paintConcluded(ctx, state, x, y, w, height) {
  ctx.globalAlpha = 0.38;
  paintState(ctx, state, x, y, w, height);
  ctx.globalAlpha = 1;
  ctx.fillStyle = ctx.strokeStyle = colours.muted;
  for (let dot = Math.ceil(x / 6) * 6; dot < x + w; dot += 6) ctx.fillRect(dot, y + height - 1, Math.min(3, x + w - dot), 1);
}

/** Predictions that came true, where they did. */
function paintKept(ctx, place, life, hits) {
  const middle = place.bar + place.barHeight / 2;
  for (const each of life.next) {
    if (each.state !== "happened" || each.until === null || each.until > place.at) continue;
    const x = place.x(each.until);
    if (x < 0) continue;
    ctx.strokeStyle = colours.accent;
    paintDiamond(ctx, x, middle, false);
    const lines = () => [fullName(life), `${clockTime(each.until)}  ${each.missed ? "late" : "as predicted"}: ${each.who} ${each.what}`];
    hits.push({ x: x - 7, y: place.bar - 2, w: 14, h: place.barHeight + 4, uid: life.uid, key: keyOf(life, each), lines });
  }
}

const keyOf = (life, each) => `${life.uid} ${each.since} ${each.who} ${each.what}`;

function wordOf(mark, life, isSecond) {
  const kind = mark[1];
  if (kind === "delete") {
    // The node ends every deletion with a DELETE of its own: the first one tells the story, with its own grace.
    const first = life.marks.find((each) => each[1] === "delete");
    const grace = /grace (?:of )?(\d+)/.exec(mark[2])?.[1] ?? life.grace;
    return mark !== first ? "" : typeof grace === "string" || grace > 0 ? `DELETE, grace ${grace}s` : "DELETE";
  }
  return kind === "created" && isSecond ? "created again" : MARKS[kind]?.[2];
}

function paintGlyph(ctx, x, y, glyph, rank, height) {
  if (rank === 0 || glyph === "│") {
    ctx.fillStyle = colours.text;
    ctx.globalAlpha = rank === 0 ? 0.45 : 0.8;
    ctx.fillRect(x - 0.75, y - height / 2, 1.5, height);
    ctx.globalAlpha = 1;
    return;
  }
  ctx.fillStyle = colours.surface;
  ctx.strokeStyle = glyph === "!" || glyph === "K" || glyph === "⏏" ? colours.danger : colours.text;
  ctx.lineWidth = 1.2;
  ctx.beginPath();
  if (/[DPTK]/.test(glyph)) ctx.roundRect(x - 6, y - 6.5, 12, 13, 3);
  else ctx.arc(x, y, 5.5, 0, 7);
  ctx.fill();
  ctx.stroke();
  ctx.fillStyle = ctx.strokeStyle;
  ctx.textAlign = "center";
  ctx.font = font.replace("11px", "600 9px");
  ctx.fillText(glyph, x, y + 3.2);
  ctx.font = font;
  ctx.textAlign = "left";
}

function markLines(life, marks) {
  const shown = marks.slice(-8).map(([at, kind, text, who]) => `${clockTime(at)}  ${text || kind}${who ? `  [${who}]` : ""}`);
  return [fullName(life), ...(marks.length > 8 ? [`${marks.length - 8} earlier`] : []), ...shown];
}

function paintFuture(ctx, place, life, hits) {
  const { nowX, width, at } = place;
  const next = nextAt(life, at);
  const isPresent = at >= place.now;
  const stuck = stuckAt(life, at);
  const waits = isPresent ? life.waits : "";
  const trouble = stuck ? `⚠ ${waits || stuck}` : waits;
  const facts = life.kind === "node" && isPresent ? [life.cordoned && "cordoned", ...(life.taints || []), ...badConditions(life)] : [];
  const note = trouble || facts.filter(Boolean).join(", ");
  if (note) {
    ctx.fillStyle = stuck ? colours.danger : colours.muted;
    ctx.fillText(fit(ctx, note, width - nowX - 14), nowX + 8, place.text);
    hits.push({ x: nowX, y: place.y, w: width - nowX, h: 16, uid: life.uid, key: `${life.uid} note`, lines: () => [fullName(life), ...wrap(note)] });
  }
  paintPredictions(ctx, place, life, next, hits);
}

function paintPredictions(ctx, place, life, next, hits) {
  const { x, nowX, width, at, bar, barHeight } = place;
  const middle = bar + barHeight / 2;
  let free = nowX + 8;
  // What is due after the right edge: the first stands right of now if nothing else does, the others are counted at the edge.
  const beyond = next.filter((each, i) => i > 0 && (each.at === null || x(each.at) >= width));
  const more = beyond.length ? `+${beyond.length} later` : "";
  const edge = more ? width - measure(ctx, more) - 6 : width;
  next.forEach((each, i) => {
    const missed = isMissed(each, at);
    const px = each.at === null ? null : x(each.at);
    ctx.strokeStyle = ctx.fillStyle = missed ? colours.danger : colours.accent;
    if (px !== null && px > 0) {
      const [from, to] = [Math.min(px, nowX), Math.min(Math.max(px, nowX), width)];
      ctx.setLineDash([2, 3]);
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(from, middle);
      ctx.lineTo(to, middle);
      ctx.stroke();
      ctx.setLineDash([]);
      if (px < width) paintDiamond(ctx, px, middle, missed);
    }
    const hit = { y: bar - 2, h: barHeight + 4, uid: life.uid, key: keyOf(life, each), lines: () => predictionLines(life, each, at) };
    const isShown = px !== null && px > nowX - 6 && px < width;
    if (px !== null && px < width && px > 0) hits.push({ ...hit, x: px - 7, w: 14 });
    if (i > 0 && !isShown) return;
    const words = isShown ? predictionText(each, at).replace(/^in /, "") : predictionText(each, at);
    const { start, text } = spot(ctx, words, free, isShown ? px : null, x(next[i + 1]?.at ?? Infinity), edge);
    if (!text) return;
    const w = measure(ctx, text);
    ctx.fillStyle = colours.surface;
    ctx.fillRect(start - 2, middle - 7, w + 4, 14);
    ctx.fillStyle = missed ? colours.danger : colours.text;
    ctx.fillText(text, start, middle + 4);
    hits.push({ ...hit, x: start, w });
    free = Math.max(start + w + 10, isShown ? px + 9 : 0, free);
  });
  const later = () => beyond.map((each) => predictionText(each, at));
  if (more && edge >= free) {
    ctx.fillStyle = colours.muted;
    ctx.fillText(more, edge + 4, middle + 4);
    hits.push({ x: edge, y: bar - 2, w: width - edge, h: barHeight + 4, uid: life.uid, key: `${life.uid} later`, lines: () => [fullName(life), ...later()] });
  } else if (more && hits.length) {
    // Without room for a word, what is last tells of it.
    const last = hits.pop();
    hits.push({ ...last, lines: () => [...last.lines(), ...later()] });
  }
}

const predictionLines = (life, each, at) => [fullName(life), predictionText(each, at), ...(each.at === null ? [] : [clockTime(each.at)])];

/** Where the words of a prediction stand: right of its diamond until the next one, left of it where there is more room, as near the edge. */
function spot(ctx, words, free, px, following, edge) {
  const start = px === null ? free : Math.max(px + 9, free);
  const room = (following > start ? Math.min(following - 10, edge) : edge) - start - 4;
  const w = measure(ctx, words);
  if (px === null || w <= room || px - 9 - free <= room) return { start, text: fit(ctx, words, room) };
  const text = fit(ctx, words, px - 9 - free);
  return { start: px - 9 - measure(ctx, text), text };
}

function paintDiamond(ctx, x, y, missed) {
  ctx.beginPath();
  ctx.moveTo(x, y - 6);
  ctx.lineTo(x + 6, y);
  ctx.lineTo(x, y + 6);
  ctx.lineTo(x - 6, y);
  ctx.closePath();
  const colour = ctx.strokeStyle;
  ctx.fillStyle = colours.surface;
  ctx.fill();
  ctx.stroke();
  if (!missed) return;
  ctx.fillStyle = colour;
  ctx.fillRect(x - 0.8, y - 3.5, 1.6, 4.5);
  ctx.fillRect(x - 0.8, y + 2, 1.6, 1.6);
}

/** Long messages in lines of about 70 characters. */
function wrap(text) {
  return text.match(/.{1,70}(?:\s|$)|.{1,70}/g)?.slice(0, 6) || [];
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600].map((s) => s * 1000);

// More than fit on any screen, whatever the span.
const MOST_TICKS = 100;

/** The axis above the lanes: round local times, and `end`, which names the end of what is known while it is followed. */
export function paintAxis(ctx, place, span, height, end) {
  const step = STEPS.find((each) => (each / span) * place.width >= 76) || 43200000;
  const shift = new Date(place.at).getTimezoneOffset() * 60000;
  const [t0, t1] = [place.at - (place.nowX / place.width) * span, place.at + (1 - place.nowX / place.width) * span];
  const label = `${end} ${clockTime(place.at)}`.trim();
  ctx.font = `600 ${font}`;
  const w = ctx.measureText(label).width + 12;
  const left = Math.min(place.nowX - w / 2, place.width - w);
  ctx.fillStyle = colours.accent;
  ctx.beginPath();
  ctx.roundRect(left, 3, w, 17, 4);
  ctx.fill();
  ctx.fillStyle = colours.surface;
  ctx.fillText(label, left + 6, 15.5);
  ctx.font = font;
  const ticks = [];
  for (let t = Math.ceil((t0 - shift) / step) * step + shift; t < place.at && ticks.length < MOST_TICKS; t += step) ticks.push(t);
  for (let t = place.at + step; t < t1 && ticks.length < 2 * MOST_TICKS; t += step) ticks.push(t);
  for (const t of ticks) {
    const x = place.x(t);
    ctx.fillStyle = colours.line;
    ctx.fillRect(x, 22, 1, height - 22);
    const text = t > place.at ? `+${duration(t - place.at)}` : clockTime(t, step < 60000);
    const width = measure(ctx, text);
    if (x - width / 2 < left + w + 6 && x + width / 2 > left - 6) continue;
    ctx.fillStyle = colours.muted;
    ctx.fillText(text, Math.max(x - width / 2, 2), 15.5);
  }
  ctx.fillStyle = colours.accent;
  ctx.fillRect(place.nowX - 0.75, 20, 1.5, height - 20);
}

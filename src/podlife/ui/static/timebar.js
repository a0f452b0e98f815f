// Moving in time: how much is shown, following now, scrubbing over what was seen, and playing it again.
import { byId, clockTime, duration, h, setText, zone } from "./dom.js";

export const SPANS = [60, 300, 900, 3600, 6 * 3600, 24 * 3600].map((s) => s * 1000);
const SLIDER = 1000;

/** Within what can be shown; NaN and 0 stay. */
export const boundedSpan = (span) => span && Math.round(Math.max(SPANS[0] / 2, Math.min(span, SPANS[SPANS.length - 1])));

export class Timebar {
  /** @param {{store: import("./store.js").Store, view: any, changed: () => void, remember: () => void}} parts */
  constructor(parts) {
    Object.assign(this, parts);
    this.slider = byId("scrub");
    this.speed = 0;
    byId("span").addEventListener("change", (event) => this.setSpan(Number(event.target.value)));
    byId("follow").addEventListener("click", () => this.follow());
    byId("play").addEventListener("click", () => this.play(!this.speed));
    this.slider.addEventListener("input", () => {
      this.play(false);
      const { from, to } = this.range();
      this.goTo(from + (Number(this.slider.value) / SLIDER) * (to - from));
    });
  }

  /** From the first thing that was seen until now. */
  range() {
    const to = this.store.now();
    const from = Math.min(this.store.hello?.started ?? to, to - 1000);
    return { from, to };
  }

  setSpan(span) {
    this.view.span = boundedSpan(span);
    this.remember();
    this.changed();
  }

  zoom(factor) {
    this.setSpan(this.view.span * factor);
  }

  follow() {
    this.play(false);
    this.view.at = null;
    this.changed();
  }

  goTo(at) {
    const { from, to } = this.range();
    // The end of the slider is now, and stays now.
    this.view.at = at >= to - 250 ? null : Math.max(at, from);
    this.changed();
  }

  pan(ms) {
    this.play(false);
    this.goTo((this.view.at ?? this.store.now()) + ms);
  }

  /** Play from where the view stands; from the start when it stands at now. A replay of hours passes in about a minute. */
  play(isOn) {
    const { from, to } = this.range();
    this.speed = isOn ? Math.max(1, Math.round((to - from) / 60000)) : 0;
    if (isOn && this.view.at === null) this.view.at = from;
    this.last = performance.now();
    this.changed();
  }

  /** Before every frame. @returns {boolean} whether time moves by itself */
  tick() {
    if (this.speed) {
      const now = performance.now();
      // After a sleep it goes on where it was.
      this.view.at += Math.min(now - this.last, 1000) * this.speed;
      this.last = now;
      if (this.view.at >= this.range().to) {
        this.view.at = null;
        this.speed = 0;
      }
    }
    return Boolean(this.speed) || (this.view.at === null && !this.store.isReplay);
  }

  draw() {
    const { view, store } = this;
    const { from, to } = this.range();
    const at = view.at ?? to;
    const isFollowing = view.at === null;
    if (document.activeElement !== this.slider || isFollowing || this.speed) this.slider.value = String(Math.round(((at - from) / (to - from)) * SLIDER));
    const end = store.isReplay ? ["end of the recording", "before the end"] : ["now", "ago"];
    const text = `${clockTime(at)} ${zone(at)}, ${isFollowing ? end[0] : `${duration(to - at)} ${end[1]}`}`;
    setText(byId("clock"), text);
    this.slider.setAttribute("aria-valuetext", text);
    byId("follow").setAttribute("aria-pressed", String(isFollowing));
    setText(byId("follow"), store.isReplay ? "End" : "Now");
    setText(byId("play"), this.speed ? "Pause" : "Play");
    byId("play").setAttribute("aria-pressed", String(Boolean(this.speed)));
    this.drawSpan();
  }

  /** A span that was zoomed to has an option of its own. */
  drawSpan() {
    const [select, span] = [byId("span"), String(this.view.span)];
    if (select.value === span) return;
    select.querySelector("[data-zoomed]")?.remove();
    if (!SPANS.includes(this.view.span)) {
      const below = [...select.options].find((option) => Number(option.value) > this.view.span);
      select.insertBefore(h("option", { value: span, "data-zoomed": true }, duration(this.view.span)), below || null);
    }
    select.value = span;
  }
}

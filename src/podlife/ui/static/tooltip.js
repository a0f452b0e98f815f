// One tooltip for everything that is drawn: lines of text beside a point, always inside the page.
import { byId, h } from "./dom.js";

export class Tooltip {
  constructor() {
    this.element = byId("tooltip");
  }

  /** @param {string[]} lines the first is the title */
  show(lines, x, y) {
    this.element.replaceChildren(...lines.map((line, i) => h(i ? "div" : "strong", {}, line)));
    this.element.hidden = false;
    const { offsetWidth: w, offsetHeight: height } = this.element;
    const left = Math.max(4, Math.min(x - w / 2, innerWidth - w - 4));
    const top = y + 8 + height > innerHeight ? Math.max(4, y - height - 24) : y + 8;
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}

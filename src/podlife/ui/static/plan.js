// The collector's plan: what goes now and later and why, and what guards hold back. A sweep is offered when the server allows actions.
import { announce, byId, clockTime, h, plural, relative, request } from "./dom.js";

const MOST_SHOWN = 200;
const REFRESH_MS = 10000;

export class PlanView {
  /** @param {{store: import("./store.js").Store, view: any, select: (uid: string) => void}} parts */
  constructor(parts) {
    Object.assign(this, parts);
    this.body = byId("plan-body");
    this.dialog = byId("sweep");
    byId("plan-refresh").addEventListener("click", () => this.refresh());
    byId("plan-sweep").addEventListener("click", () => this.ask());
    byId("sweep-cancel").addEventListener("click", () => this.dialog.close());
    byId("sweep-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.sweep();
    });
  }

  show(isShown) {
    clearInterval(this.timer);
    if (!isShown) return;
    this.refresh();
    this.timer = setInterval(() => !document.hidden && !this.dialog.open && this.refresh(), REFRESH_MS);
  }

  async refresh() {
    try {
      this.plan = await (await request("/api/plan")).json();
      this.draw();
    } catch (error) {
      this.body.replaceChildren(h("p", { class: "failure", role: "alert" }, error.message));
    }
  }

  draw() {
    const { plan, store } = this;
    if (!plan) return;
    const sweep = byId("plan-sweep");
    sweep.hidden = !store.hello?.actions;
    sweep.disabled = !plan.now.length;
    byId("plan-note").textContent = `${store.hello?.policy ? `Policy ${store.hello.policy}` : "Default policy"} · planned at ${clockTime(plan.at)} · ${store.hello?.actions ? "sweeps allowed" : "read-only"}`;
    this.body.replaceChildren(
      this.part("Now", plan.now, "The next sweep would delete these pods.", () => "now"),
      this.part("Later", plan.later, "These pods become collectable.", (item) => `${relative(item.at, plan.at)}, ${clockTime(item.at)}`),
      this.part("Held back", plan.held, "Guards keep these pods for now.", (item) =>
        [item.guard, item.until ? `until ${clockTime(item.until)}` : "", item.lifted_by ? `lifted by ${item.lifted_by}` : ""].filter(Boolean).join(", ")),
      ...(plan.unread.length ? [h("section", {}, h("h3", {}, "Could not be read"), h("ul", {}, ...plan.unread.map((each) => h("li", {}, each))))] : []));
  }

  part(title, items, meaning, when) {
    const byRule = new Map();
    for (const item of items) byRule.set(item.rule || "", [...(byRule.get(item.rule || "") || []), item]);
    const id = `plan-${title.replace(" ", "-").toLowerCase()}`;
    return h("section", { "aria-labelledby": id },
      h("h3", { id }, title, h("span", { class: "count" }, plural(items.length, "pod"))),
      items.length ? h("p", { class: "quiet" }, meaning) : h("p", { class: "quiet" }, "Nothing."),
      ...[...byRule].map(([rule, found]) => this.table(rule, found, when)));
  }

  table(rule, items, when) {
    const head = h("tr", {}, ...["Pod", "Why", items[0].guard === undefined ? "When" : "Held by"].map((text) => h("th", { scope: "col" }, text)));
    const line = (item) => h("tr", {},
      h("td", {}, h("button", { type: "button", class: "link", onclick: () => this.select(item.uid) }, `${item.ns}/${item.name}`)),
      h("td", {}, [item.reason, item.why].filter(Boolean).join(": ")), h("td", {}, when(item)));
    const more = items.length - MOST_SHOWN;
    return h("div", { class: "table", tabindex: "0", role: "group", "aria-label": rule || "upstream's rules" },
      h("table", {}, h("caption", {}, rule ? `Rule ${rule}` : "Upstream's rules", ` · ${plural(items.length, "pod")}`), h("thead", {}, head),
        h("tbody", {}, ...items.slice(0, MOST_SHOWN).map(line))),
      more > 0 && h("p", { class: "quiet" }, `… and ${plural(more, "more pod")}`));
  }

  /** The question of `podlife gc sweep`. */
  ask() {
    const { now, later } = this.plan;
    const reasons = new Map();
    for (const item of now) reasons.set(item.reason, (reasons.get(item.reason) || 0) + 1);
    const why = [...reasons].map(([reason, count]) => `${count} ${reason}`).join(", ");
    byId("sweep-question").textContent = `Delete ${plural(now.length, "pod")} now (${why})?`;
    byId("sweep-later").textContent = later.length ? `${plural(later.length, "pod")} would become collectable later; this sweep leaves them.` : "";
    byId("sweep-list").replaceChildren(...now.slice(0, 20).map((item) => h("li", {}, `${item.ns}/${item.name}`)), ...(now.length > 20 ? [h("li", {}, `… and ${now.length - 20} more`)] : []));
    byId("sweep-answer").value = "";
    byId("sweep-result").textContent = "";
    byId("sweep-go").disabled = false;
    this.dialog.showModal();
  }

  async sweep() {
    const result = byId("sweep-result");
    if (!["y", "yes"].includes(byId("sweep-answer").value.trim().toLowerCase())) {
      result.textContent = "Nothing was deleted: type yes to confirm.";
      return;
    }
    byId("sweep-go").disabled = true;
    result.textContent = "Sweeping …";
    try {
      const response = await request("/api/sweep", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ digest: this.plan.digest, confirm: "yes" }),
      });
      const summary = await response.json();
      result.textContent = Object.entries(summary).map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join("\n");
      announce("sweep finished");
    } catch (error) {
      result.textContent = `The sweep failed: ${error.message}`;
    }
    this.refresh();
  }
}

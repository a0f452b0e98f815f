// The collector's plan: what goes now and later and why, and what guards hold back. A sweep is offered when the server allows actions.
import { announce, byId, clockTime, failure, h, plural, relative, request, sentences, setText } from "./dom.js";

const MOST_SHOWN = 200;
const MOST_LISTED = 20;
const REFRESH_MS = 10000;
const DEFAULT_RULES = "Pod garbage collection, default rules";

/** Pods that a sweep waits for, according to the server: until a minute has room, or a quarantine ends. */
const awaited = (plan) => [...plan.held, ...plan.later].filter((item) => item.goes);

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
      this.plan = await sentences(await request("api/plan"));
      this.draw();
    } catch (error) {
      this.body.replaceChildren(...failure(error));
    }
  }

  draw() {
    const { plan, store } = this;
    if (!plan) return;
    const sweep = byId("plan-sweep");
    sweep.hidden = !store.hello?.actions;
    sweep.disabled = !plan.now.length && !awaited(plan).length;
    this.drawNote();
    this.body.replaceChildren(
      this.part("Now", plan.now, plan.counts?.now, "The next sweep would delete these pods.", () => "now"),
      this.part("Later", plan.later, plan.counts?.later, "These pods become collectable.", (item) => `${relative(item.at, plan.at)}, ${clockTime(item.at)}`),
      this.part("Held back", plan.held, plan.counts?.held, "Guards keep these pods for now.", (item) =>
        [item.guard, item.until ? `until ${clockTime(item.until)}` : "", item.lifted_by ? `lifted by ${item.lifted_by}` : ""].filter(Boolean).join(", ")),
      ...(plan.unread.length ? [h("section", {}, h("h3", {}, "Could not be read"), h("ul", {}, ...plan.unread.map((each) => h("li", {}, each))))] : []));
  }

  drawNote() {
    if (!this.plan) return;
    const { policy, actions } = this.store.hello || {};
    const notes = [policy ? `Policy ${policy}` : "Default rules", `planned at ${clockTime(this.plan.at)}`, actions ? "sweeps allowed" : "read-only",
      this.view.at !== null && `as of now, not of ${clockTime(this.view.at)}`];
    setText(byId("plan-note"), notes.filter(Boolean).join(" · "));
  }

  part(title, items, total, meaning, when) {
    const byRule = new Map();
    for (const item of items) byRule.set(item.rule || "", [...(byRule.get(item.rule || "") || []), item]);
    const id = `plan-${title.replace(" ", "-").toLowerCase()}`;
    return h("section", { "aria-labelledby": id },
      h("h3", { id }, title, h("span", { class: "count" }, plural(total ?? items.length, "pod"))),
      items.length ? h("p", { class: "quiet" }, meaning) : h("p", { class: "quiet" }, "Nothing."),
      ...[...byRule].map(([rule, found]) => this.table(rule, found, when)));
  }

  table(rule, items, when) {
    const head = h("tr", {}, ...["Pod", "Why", items[0].guard === undefined ? "When" : "Held by"].map((text) => h("th", { scope: "col" }, text)));
    const line = (item) => h("tr", {},
      h("td", {}, h("button", { type: "button", class: "link", onclick: () => this.select(item.uid) }, `${item.ns}/${item.name}`)),
      h("td", {}, [item.reason, item.why].filter(Boolean).join(": ")), h("td", {}, when(item)));
    const more = items.length - MOST_SHOWN;
    return h("div", { class: "table", tabindex: "0", role: "group", "aria-label": rule || DEFAULT_RULES },
      h("table", {}, h("caption", {}, rule ? `Rule ${rule}` : DEFAULT_RULES, ` · ${plural(items.length, "pod")}`), h("thead", {}, head),
        h("tbody", {}, ...items.slice(0, MOST_SHOWN).map(line))),
      more > 0 && h("p", { class: "quiet" }, `… and ${plural(more, "more pod")}`));
  }

  /** The question of `podlife gc sweep`. */
  ask() {
    // A plan that arrives while the question is open must not be the one that is confirmed.
    this.asked = this.plan;
    const { now, sweep } = this.asked;
    const reasons = new Map();
    for (const item of now) reasons.set(item.reason, (reasons.get(item.reason) || 0) + 1);
    const why = [...reasons].map(([reason, count]) => `${count} ${reason}`).join(", ");
    const parts = [
      sweep.now && `${plural(sweep.now, "pod")} now (${why})`,
      sweep.minute && `up to ${sweep.minute} more as the minute has room`,
      sweep.later && `${plural(sweep.later, "pod")} after quarantine`,
    ];
    byId("sweep-question").textContent = `Delete ${parts.filter(Boolean).join(" and ")}?`;
    const all = [...now, ...awaited(this.asked)];
    const total = sweep.now + sweep.minute + sweep.later;
    const names = all.slice(0, MOST_LISTED).map((item) => `${item.ns}/${item.name}`);
    if (total > names.length) names.push(`… and ${total - names.length} more`);
    byId("sweep-list").replaceChildren(...names.map((name) => h("li", {}, name)));
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
      const response = await request("api/sweep", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ digest: this.asked.digest, confirm: "yes" }),
      });
      const { outcomes, failures, held, left, complete } = await response.json();
      const lines = [...Object.entries(outcomes).map(([outcome, count]) => `${outcome}: ${count}`), held && `held back: ${held}`, left && `left: ${left}`,
        ...failures.slice(0, 20).map((each) => `failed: ${each.ns}/${each.name}: ${each.why}`), complete ? "complete" : "incomplete"];
      result.textContent = lines.filter(Boolean).join("\n");
      announce("sweep finished");
    } catch (error) {
      result.textContent = `The sweep failed: ${error.message}`;
    }
    this.refresh();
  }
}

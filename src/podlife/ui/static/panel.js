// The panel of one pod or node: what `podlife explain` says, its timeline, logs, YAML, and the archive entry of one that is gone.
import { announce, byId, clockTime, dateTime, duration, h, relative, request, setText } from "./dom.js";
import { fullName, nextAt, ownerName, predictionText, stateAt, stateWord } from "./life.js";
import { showLogs } from "./logs.js";

const TABS = { explain: "Explain", timeline: "Timeline", logs: "Logs", yaml: "YAML", archive: "Archive" };
// A pod that changes often is explained again at this pace.
const REFRESH_MS = 1500;

export class Panel {
  /** @param {{store: import("./store.js").Store, view: any, close: () => void}} parts */
  constructor(parts) {
    Object.assign(this, parts);
    this.root = byId("panel");
    this.body = byId("panel-body");
    this.tabs = byId("panel-tabs");
    this.tab = "explain";
    this.stop = null;
    this.refreshes = 0;
    byId("panel-close").addEventListener("click", () => this.close());
    this.tabs.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** @returns {import("./life.js").Life|undefined} */
  get life() {
    return this.store.lives.get(this.uid);
  }

  show(uid) {
    this.uid = uid;
    const life = this.life;
    this.root.hidden = !life;
    if (!life) return;
    if (!this.offered(life).includes(this.tab)) this.tab = this.offered(life)[0];
    this.head();
    this.open(this.tab);
    this.root.focus({ preventScroll: true });
  }

  hide() {
    this.stop?.abort();
    this.uid = "";
    this.root.hidden = true;
  }

  offered(life) {
    // A recording has no cluster to ask.
    if (this.store.isReplay) return ["timeline"];
    return Object.keys(TABS).filter((tab) => (tab !== "logs" || life.kind === "pod") && (tab !== "archive" || (life.kind === "pod" && life.to !== null)));
  }

  head() {
    const life = this.life;
    if (!life) return;
    const now = this.view.at ?? this.store.now();
    setText(byId("panel-title"), life.name);
    const gone = life.to !== null;
    const facts = [gone ? `gone since ${clockTime(life.to)}` : life.stage || stateWord(life, stateAt(life, now)), life.ns, ownerName(life),
      life.kind === "pod" ? life.node && `on ${life.node}` : "node", life.ready && !gone ? `${life.ready} ready` : "",
      life.restarts ? `${life.restarts} restarts` : "", `${duration((life.to ?? this.store.now()) - life.from)} old`];
    setText(byId("panel-facts"), facts.filter(Boolean).join(" · "));
    const offered = this.offered(life);
    if (this.tabs.dataset.tabs !== offered.join()) {
      this.tabs.dataset.tabs = offered.join();
      const common = { type: "button", role: "tab", "aria-controls": "panel-body" };
      this.tabs.replaceChildren(...offered.map((tab) => h("button", { ...common, id: `tab-${tab}`, onclick: () => this.open(tab) }, TABS[tab])));
    }
    for (const button of this.tabs.children) {
      const isOpen = button.id === `tab-${this.tab}`;
      button.setAttribute("aria-selected", String(isOpen));
      button.setAttribute("tabindex", isOpen ? "0" : "-1");
    }
  }

  onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const buttons = [...this.tabs.children];
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
    event.preventDefault();
  }

  /** After changes: the head at once, the explanation when the last one is old enough. */
  changed(uids) {
    if (!this.uid) return;
    // After a new start of the stream the life may come again.
    if (!this.life) return this.store.isSynced && this.close();
    if (!uids.has(this.uid)) return;
    this.head();
    if (this.tab === "timeline") this.open("timeline");
    if (this.tab !== "explain" || this.timer || this.life.to !== null) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      if (this.uid && this.tab === "explain") this.open("explain", true);
    }, REFRESH_MS);
  }

  async open(tab, isRefresh = false) {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    this.tab = tab;
    this.head();
    const life = this.life;
    this.body.setAttribute("aria-labelledby", `tab-${tab}`);
    if (!isRefresh && tab !== "timeline") this.body.replaceChildren(h("p", { class: "quiet" }, "Reading …"));
    const fill = (...nodes) => stop.signal.aborted || this.body.replaceChildren(...nodes);
    try {
      if (tab === "timeline") fill(this.timeline(life));
      else if (tab === "logs") fill(showLogs(life, this.path(life, "log"), stop.signal));
      else fill(...(await this[tab](life, stop.signal)));
    } catch (error) {
      if (error.name !== "AbortError") fill(h("p", { class: "failure", role: "alert" }, error.message));
    }
  }

  path(life, what) {
    const name = encodeURIComponent(life.name);
    const base = life.kind === "node" ? `api/nodes/${name}` : `api/pods/${encodeURIComponent(life.ns)}/${name}`;
    return `${base}/${what}?uid=${encodeURIComponent(life.uid)}`;
  }

  async explain(life, signal) {
    const found = await (await request(this.path(life, "explain"), { signal })).json();
    const now = this.store.now();
    const parts = [h("p", { class: "stage" }, found.stage)];
    if (found.deletion) parts.push(h("p", {}, `Deleted ${found.deletion}`));
    for (const cause of found.causes) parts.push(causeOf(cause, now));
    if (!found.causes.length) parts.push(h("p", { class: "good" }, "Nothing holds it up."));
    if (found.upcoming.length) parts.push(section("What will act", found.upcoming.map((each) => upcoming(each, now))));
    if (found.unread.length) parts.push(section("Could not be read, and may matter", found.unread));
    const which = life.kind === "node" ? `node ${life.name}` : `pod ${life.name} -n ${life.ns}`;
    const command = ["podlife explain", which, this.store.hello?.flags].filter(Boolean).join(" ");
    parts.push(h("h3", {}, "The same in a terminal"), commandLine(command));
    return parts;
  }

  timeline(life) {
    const at = this.view.at ?? this.store.now();
    const ahead = nextAt(life, at).map((each) =>
      h("li", { class: `ahead ${each.state}` }, h("time", {}, each.at === null ? "later" : clockTime(each.at)), h("span", {}, predictionText(each, at))));
    const past = life.marks.filter((mark) => mark[0] <= at);
    const marks = past.map(([time, kind, text, who]) =>
      h("li", { class: `mark ${kind}` }, h("time", { title: dateTime(time) }, clockTime(time)),
        h("span", {}, text || kind, who ? h("em", {}, ` ${who}`) : null)));
    const list = h("ol", { class: "timeline", "aria-label": "Timeline, newest first" }, ...ahead.reverse(), ...marks.reverse());
    const waits = this.view.at === null && life.waits;
    return h("div", {}, waits && h("p", { class: life.stuck ? "failure" : "quiet" }, waits), list);
  }

  async yaml(life, signal) {
    const text = await (await request(this.path(life, "yaml"), { signal })).text();
    return [h("div", { class: "tools" }, copyButton(text, "Copy YAML")), h("pre", { tabindex: "0", "aria-label": `YAML of ${fullName(life)}` }, text)];
  }

  async archive(life, signal) {
    const entry = await (await request(this.path(life, "archive"), { signal })).json();
    const text = JSON.stringify(entry, null, 2);
    return [h("div", { class: "tools" }, copyButton(text, "Copy entry")), h("pre", { tabindex: "0", "aria-label": "Archive entry" }, text)];
  }
}

function causeOf(cause, now) {
  const since = cause.since ? ` for ${duration(now - Date.parse(cause.since))}` : "";
  return h("article", { class: cause.stuck ? "cause stuck" : "cause" },
    h("h3", {}, `${cause.stuck ? "Stuck" : "Takes its time"}${since}: ${cause.cause}`),
    h("p", {}, cause.text),
    ...cause.upcoming.map((each) => h("p", { class: "quiet" }, `Then: ${upcoming(each, now)}`)),
    ...cause.commands.flatMap((each, i) => [
      h("p", { class: "quiet" }, i ? "Or:" : "To unblock it:"), commandLine(each.command), h("p", { class: "risk" }, `Risk: ${each.risk}`)]));
}

const upcoming = (each, now) => `${each.who} ${each.what}${each.at ? ` (${relative(Date.parse(each.at), now)}, ${clockTime(Date.parse(each.at))})` : ""}`;
const section = (title, lines) => h("section", {}, h("h3", {}, title), h("ul", {}, ...lines.map((line) => h("li", {}, line))));

export const commandLine = (command) => h("div", { class: "command" }, h("code", {}, command), copyButton(command, "Copy"));

function copyButton(text, label) {
  const copy = async (event) => {
    await navigator.clipboard.writeText(text).catch(() => byHand(text));
    event.target.textContent = "Copied";
    announce("copied");
    setTimeout(() => (event.target.textContent = label), 1500);
  };
  return h("button", { type: "button", class: "copy", "aria-label": `${label}: ${text.slice(0, 80)}`, onclick: copy }, label);
}

/** Without a secure context there is no clipboard API: a selection can still be copied. */
function byHand(text) {
  const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

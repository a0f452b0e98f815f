// The panel of one pod or node: what `podlife explain` says, its timeline, logs, YAML, and the archive entry of one that is gone.
import { announce, byId, clockTime, dateTime, duration, failure, h, plural, relative, request, sentences, setText } from "./dom.js";
import { fullName, nextAt, ownerName, predictionText, restartsAt, stateAt, stateWord, stuckAt } from "./life.js";
import { showLogs } from "./logs.js";

const TABS = { explain: "Explain", timeline: "Timeline", logs: "Logs", yaml: "YAML", archive: "Archive" };
// A pod that changes often is explained again at this pace.
const REFRESH_MS = 1500;
// While time is moved by hand or played, the panel follows at this pace.
const STEP_MS = 500;

export class Panel {
  /** @param {{store: import("./store.js").Store, view: any, close: () => void}} parts */
  constructor(parts) {
    Object.assign(this, parts);
    this.root = byId("panel");
    this.body = byId("panel-body");
    this.tabs = byId("panel-tabs");
    this.tab = "explain";
    this.stop = null;
    // The UID of the pod that the archive was asked for, and of one that it has.
    this.asked = this.entry = "";
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
    this.note();
    this.head();
    this.open(this.tab);
    this.lookForEntry(life);
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
    return Object.keys(TABS).filter((tab) => (tab !== "logs" || life.kind === "pod") && (tab !== "archive" || this.entry === life.uid));
  }

  /** Whether the archive has an entry of a pod that is gone: `explain` lists it, unless another pod has the name now. */
  async lookForEntry(life) {
    if (this.store.isReplay || life.kind !== "pod" || life.to === null || this.asked === life.uid) return;
    this.asked = life.uid;
    const isEntry = (each) => each.what.startsWith("archived ") && each.what.includes(life.uid);
    const hasEntry = await request(this.path(life, "explain"))
      .then(async (response) => (await response.json()).timeline.some(isEntry))
      .catch((error) => error.status === 404 && request(this.path(life, "archive")).then(() => true, () => false));
    if (!hasEntry || this.uid !== life.uid) return;
    this.entry = life.uid;
    this.head();
  }

  head() {
    const life = this.life;
    if (!life) return;
    const at = this.view.at ?? this.store.now();
    const isPast = this.view.at !== null;
    setText(byId("panel-title"), life.name);
    const gone = life.to !== null && life.to <= at;
    const restarts = restartsAt(life, at);
    const state = stateWord(life, stateAt(life, at));
    const facts = [gone ? `gone since ${clockTime(life.to)}` : isPast ? `${state} at ${clockTime(at)}` : life.stage || state, life.ns, ownerName(life),
      life.kind === "pod" ? life.node && `on ${life.node}` : "node", life.ready && !gone && !isPast ? `${life.ready} ready` : "",
      restarts ? plural(restarts, "restart") : "",
      gone ? `lived ${duration(life.to - life.from)}` : at < life.from ? "" : `${duration(at - life.from)} old`];
    setText(byId("panel-facts"), facts.filter(Boolean).join(" · "));
    const isOfNow = isPast && this.tab !== "timeline";
    byId("panel-when").hidden = !isOfNow;
    setText(byId("panel-when"), isOfNow ? `As of now, not of ${clockTime(at)}.` : "");
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

  /** Remember what is shown. @returns {boolean} whether it was something else */
  note() {
    const { life, view } = this;
    const at = view.at === null ? null : Math.round(view.at / STEP_MS);
    const isOther = life !== this.noted?.life || at !== this.noted.at;
    this.noted = { life, at };
    return isOther;
  }

  /** After changes: the head at once, the explanation when the last one is old enough. What a pod that is gone said last stays. */
  changed() {
    if (!this.uid) return;
    // After a new start of the stream the life may come again.
    if (!this.life) return this.store.isSynced && this.close();
    const before = this.noted?.life;
    if (!this.note()) return;
    this.head();
    if (this.tab === "timeline") this.open("timeline");
    if (this.life === before) return;
    this.lookForEntry(this.life);
    if (this.tab !== "explain" || this.timer) return;
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
      else if (life.to !== null && ["logs", "yaml"].includes(tab)) fill(this.gone(life, tab));
      else if (tab === "logs") fill(showLogs(life, this.path(life, "log"), stop.signal));
      else fill(...(await this[tab](life, stop.signal)));
    } catch (error) {
      if (error.name !== "AbortError") fill(...failure(error));
    }
  }

  path(life, what) {
    const name = encodeURIComponent(life.name);
    const base = life.kind === "node" ? `api/nodes/${name}` : `api/pods/${encodeURIComponent(life.ns)}/${name}`;
    return `${base}/${what}?uid=${encodeURIComponent(life.uid)}`;
  }

  gone(life, tab) {
    const archived = this.entry === life.uid ? " The archive has its last record." : "";
    return h("p", { class: "quiet" }, `Gone at ${clockTime(life.to)}; its ${tab === "logs" ? "logs went" : "YAML went"} with it.${archived}`);
  }

  async explain(life, signal) {
    const isGone = life.to !== null;
    const ended = isGone ? h("p", { class: "stage" }, `Gone since ${clockTime(life.to)}, lived ${duration(life.to - life.from)}`) : null;
    const response = await request(this.path(life, "explain"), { signal }).catch((error) => {
      if (isGone && error.status === 404) return null;
      throw error;
    });
    if (!response) return [ended, h("p", {}, "Another pod has its name now. Its timeline has what was seen of it.")];
    const found = await sentences(response);
    const now = this.store.now();
    const parts = [ended || h("p", { class: "stage" }, found.stage)];
    if (isGone && found.stage !== "gone") parts.push(h("p", { class: "quiet" }, found.stage));
    if (found.deletion) parts.push(h("p", {}, `Deleted ${found.deletion}`));
    // What helps several pods of a node is offered once.
    const offered = new Set();
    for (const cause of found.causes) parts.push(causeOf(cause, now, offered));
    if (!found.causes.length && !isGone) parts.push(h("p", { class: "good" }, "Nothing holds it up."));
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
    return h("div", {}, waits && h("p", { class: stuckAt(life, at) ? "failure" : "quiet" }, waits), list);
  }

  async yaml(life, signal) {
    const text = await (await request(this.path(life, "yaml"), { signal })).text();
    return [h("div", { class: "tools" }, copyButton(text, "Copy YAML")), h("pre", { tabindex: "0", "aria-label": `YAML of ${fullName(life)}` }, text)];
  }

  async archive(life, signal) {
    const entry = await (await request(this.path(life, "archive"), { signal })).json();
    // Its times are those of the record, which is kept in UTC.
    const text = JSON.stringify(entry, null, 2);
    return [h("div", { class: "tools" }, copyButton(text, "Copy entry")), h("pre", { tabindex: "0", "aria-label": "Archive entry" }, text)];
  }
}

function causeOf(cause, now, offered) {
  const commands = cause.commands.filter((each) => !offered.has(each.command) && offered.add(each.command));
  const since = cause.since ? ` for ${duration(now - Date.parse(cause.since))}` : "";
  return h("article", { class: cause.stuck ? "cause stuck" : "cause" },
    h("h3", {}, `${cause.stuck ? "Stuck" : "Takes its time"}${since}: ${cause.cause}`),
    h("p", {}, cause.text),
    ...cause.upcoming.map((each) => h("p", { class: "quiet" }, `Then: ${upcoming(each, now)}`)),
    ...commands.flatMap((each, i) => [
      h("p", { class: "quiet" }, i ? "Or:" : "To unblock it:"), commandLine(each.command), h("p", { class: "risk" }, `Risk: ${each.risk}`)]),
    cause.commands.length > commands.length && h("p", { class: "quiet" }, `${commands.length ? "Or a" : "A"} command that is shown above.`));
}

const upcoming = (each, now) => `${each.who} ${each.what}${each.at ? ` (${relative(Date.parse(each.at), now)}, ${clockTime(Date.parse(each.at))})` : ""}`;
const section = (title, lines) => h("section", {}, h("h3", {}, title), h("ul", {}, ...lines.map((line) => h("li", {}, line))));

/** A command to copy; what a person has to fill in, such as <IMAGE>, is marked. */
export function commandLine(command) {
  const parts = command.split(/(<[A-Z][A-Z0-9_-]*>)/).map((part, i) => (i % 2 ? h("mark", {}, part) : part));
  const blanks = [...new Set(command.match(/<[A-Z][A-Z0-9_-]*>/g))];
  return h("div", { class: "command" }, h("code", {}, ...parts), copyButton(command, "Copy"),
    blanks.length > 0 && h("p", { class: "risk" }, `Fill in ${blanks.join(", ")} before you run it.`));
}

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

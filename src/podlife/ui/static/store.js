// What the server says: the lives by UID, its clock, and whether it is heard.
//
// The browser resumes a lost stream by its last event id. After `hello` everything is sent again: what was known stays on the page until the
// picture is complete, then what was not sent again is forgotten. Listeners hear of changes at most once per animation frame.
import { localTimes } from "./dom.js";
import { fullName } from "./life.js";
import { sortKey } from "./rows.js";

const RETRY_MS = 2000;
// The server sends a status every 5 seconds: three missing ones mean that the connection is dead, whatever the browser thinks of it.
const SILENCE_MS = 16000;
// The watchdog looks every second: a much longer pause means that the machine or the page slept, and what was open is stale.
const SLEEP_MS = 10000;
const DEADLINE_MS = 10000;
// Smaller differences are the network's: following them would make the line of now jump.
const CLOCK_STEP_MS = 400;

export class Store {
  constructor() {
    /** @type {Map<string, import("./life.js").Life>} */
    this.lives = new Map();
    this.hello = null;
    this.isSynced = false;
    this.isLive = true;
    /** @type {"connecting"|"connected"|"lost"|"denied"} */
    this.connection = "connecting";
    this.missing = [];
    // Grows when rows may have come, gone or moved: a change of state alone keeps them.
    this.structure = 0;
    // What was known before everything is sent again, and has not been sent yet.
    this.unsent = new Set();
    this.listeners = [];
    this.offset = null;
    this.heard = 0;
    this.isScheduled = false;
    this.timer = 0;
    setInterval(() => this.check(), 1000);
    for (const name of ["online", "focus", "pageshow"]) addEventListener(name, () => this.check());
    for (const name of ["visibilitychange", "resume"]) document.addEventListener(name, () => document.hidden || this.check());
  }

  /** Call back after changes. */
  listen(callback) {
    this.listeners.push(callback);
  }

  /** The server's time; in a replay, the end of the recording. */
  now() {
    return this.isReplay ? this.hello.now : Date.now() + (this.offset || 0);
  }

  get isReplay() {
    return this.hello?.mode === "replay";
  }

  connect() {
    this.close();
    const source = (this.source = new EventSource("api/stream"));
    const { signal } = (this.closed = new AbortController());
    const on = (name, handle) =>
      source.addEventListener(name, (event) => {
        this.heard = Date.now();
        this.connection = "connected";
        handle(JSON.parse(event.data));
        this.notify();
      }, { signal });
    on("hello", (hello) => this.reset(hello));
    on("resumed", ({ now }) => this.setClock(now));
    on("lives", (lives) => lives.forEach((life) => this.put(life)));
    on("synced", ({ now }) => {
      this.isSynced = true;
      for (const uid of this.unsent) this.drop(uid);
      this.unsent.clear();
      this.setClock(now);
    });
    on("forget", (uids) => uids.forEach((uid) => this.drop(uid)));
    on("status", (status) => {
      this.setClock(status.now);
      this.isLive = status.live;
      this.missing = status.missing || [];
    });
    source.addEventListener("error", () => this.failed(), { signal });
    this.heard = this.looked = Date.now();
  }

  close() {
    this.source?.close();
    this.closed?.abort();
    this.source = null;
  }

  /** Whether the stream is heard. By the clock on the wall: other clocks stand still while a machine sleeps. */
  check() {
    const now = Date.now();
    const hasSlept = now - this.looked > SLEEP_MS && now - this.heard > SLEEP_MS;
    this.looked = now;
    if (!this.source || !(hasSlept || now - this.heard > SILENCE_MS)) return;
    this.failed(true);
  }

  reset(hello) {
    if (this.hello && (this.hello.cluster !== hello.cluster || this.hello.mode !== hello.mode)) this.lives.clear();
    this.unsent = new Set(this.lives.keys());
    this.hello = hello;
    this.missing = hello.missing || [];
    this.isSynced = false;
    this.offset = null;
    this.structure++;
    this.setClock(hello.now);
  }

  put(life) {
    const old = this.lives.get(life.uid);
    life.title = old?.title || fullName(life);
    life.sort = old?.sort || sortKey(life.title);
    if (!old || old.to !== life.to || old.node !== life.node || old.owner?.name !== life.owner?.name) this.structure++;
    for (const field of ["stage", "waits"]) life[field] = localTimes(life[field]);
    for (const mark of life.marks) mark[2] = localTimes(mark[2]);
    for (const each of life.next) each.what = localTimes(each.what);
    this.lives.set(life.uid, life);
    this.unsent.delete(life.uid);
  }

  drop(uid) {
    if (this.lives.delete(uid)) this.structure++;
    this.unsent.delete(uid);
  }

  setClock(now) {
    const offset = now - Date.now();
    if (this.offset === null || Math.abs(offset - this.offset) > CLOCK_STEP_MS) this.offset = offset;
  }

  /** The browser retries by itself unless the response was an error; then this does, and learns whether access was refused. */
  failed(isSilent = false) {
    if (this.connection !== "denied") this.connection = "lost";
    this.notify();
    if (this.source.readyState !== EventSource.CLOSED && !isSilent) return;
    this.close();
    // A stream that fell silent may be there again at once, after a sleep for example.
    this.retryIn(isSilent ? 0 : RETRY_MS);
  }

  retryIn(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.retry(), ms);
  }

  async retry() {
    const stop = new AbortController();
    const deadline = setTimeout(() => stop.abort(), DEADLINE_MS);
    try {
      const response = await fetch("api/stream", { signal: stop.signal });
      // 404: a server with another token may serve under another path.
      this.connection = [401, 403, 404].includes(response.status) ? "denied" : "lost";
      if (response.ok) return this.connect();
    } catch {
      this.connection = "lost";
    } finally {
      clearTimeout(deadline);
      stop.abort();
    }
    this.notify();
    this.retryIn(this.connection === "denied" ? 5 * RETRY_MS : RETRY_MS);
  }

  notify() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      for (const listener of this.listeners) listener();
    });
  }
}

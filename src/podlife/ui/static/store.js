// What the server says: the lives by UID, its clock, and whether it is heard.
//
// The browser resumes a lost stream by its last event id; after `hello` everything known before is forgotten. Listeners hear of changes
// at most once per animation frame.
import { sortKey } from "./rows.js";

const RETRY_MS = 2000;
// The server sends a status every 5 seconds: three missing ones mean that the connection is dead, whatever the browser thinks of it.
const SILENCE_MS = 16000;
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
    this.changed = new Set();
    this.listeners = [];
    this.offset = null;
    this.heard = 0;
    this.isScheduled = false;
  }

  /** Call back after changes, with the UIDs that changed. */
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
    const source = new EventSource("api/stream");
    this.source = source;
    const on = (name, handle) =>
      source.addEventListener(name, (event) => {
        this.heard = performance.now();
        this.connection = "connected";
        handle(JSON.parse(event.data));
        this.notify();
      });
    on("hello", (hello) => this.reset(hello));
    on("resumed", ({ now }) => this.setClock(now));
    on("lives", (lives) => lives.forEach((life) => this.put(life)));
    on("synced", ({ now }) => {
      this.isSynced = true;
      this.setClock(now);
    });
    on("forget", (uids) => uids.forEach((uid) => this.drop(uid)));
    on("status", (status) => {
      this.setClock(status.now);
      this.isLive = status.live;
      this.missing = status.missing || [];
    });
    source.onerror = () => this.failed(source);
    this.heard = performance.now();
    clearInterval(this.watchdog);
    this.watchdog = setInterval(() => {
      if (performance.now() - this.heard > SILENCE_MS && !this.isReplay) this.failed(source, true);
    }, 1000);
  }

  reset(hello) {
    for (const uid of this.lives.keys()) this.changed.add(uid);
    this.lives.clear();
    this.hello = hello;
    this.missing = hello.missing || [];
    this.isSynced = false;
    this.isLive = true;
    this.offset = null;
    this.structure++;
    this.setClock(hello.now);
  }

  put(life) {
    const old = this.lives.get(life.uid);
    life.sort = old?.sort || sortKey(`${life.ns}/${life.name}`);
    if (!old || old.to !== life.to || old.node !== life.node || old.owner?.name !== life.owner?.name) this.structure++;
    this.lives.set(life.uid, life);
    this.changed.add(life.uid);
  }

  drop(uid) {
    if (this.lives.delete(uid)) this.structure++;
    this.changed.add(uid);
  }

  setClock(now) {
    const offset = now - Date.now();
    if (this.offset === null || Math.abs(offset - this.offset) > CLOCK_STEP_MS) this.offset = offset;
  }

  /** The browser retries by itself unless the response was an error; then this does, and learns whether access was refused. */
  failed(source, isSilent = false) {
    if (source !== this.source) return;
    if (this.connection !== "denied") this.connection = "lost";
    this.notify();
    if (source.readyState !== EventSource.CLOSED && !isSilent) return;
    source.close();
    this.source = null;
    clearInterval(this.watchdog);
    setTimeout(() => this.retry(), RETRY_MS);
  }

  async retry() {
    const stop = new AbortController();
    try {
      const response = await fetch("api/stream", { signal: stop.signal });
      this.connection = response.status === 401 || response.status === 403 ? "denied" : "lost";
      stop.abort();
      if (response.ok) return this.connect();
    } catch {
      this.connection = "lost";
    }
    this.notify();
    setTimeout(() => this.retry(), this.connection === "denied" ? 5 * RETRY_MS : RETRY_MS);
  }

  notify() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      const changed = this.changed;
      this.changed = new Set();
      for (const listener of this.listeners) listener(changed);
    });
  }
}

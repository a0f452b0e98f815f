// Elements and words shared by all modules. Text from the cluster only ever becomes text nodes and attributes.

/**
 * Create an element. Keys that start with `on` are listeners; true is an empty attribute; null, undefined and false are left out.
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {...(Node|string|null|false)} children
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** @returns {HTMLElement} */
export const byId = (id) => document.getElementById(id);

/** Write only what differs: an unchanged text costs no layout and is not announced again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** `45s`, `3m 5s`, `2h 10m`, `3d 4h`. */
export function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s}s`;
  const parts = s < 3600 ? [s / 60, "m", s % 60, "s"] : s < 86400 ? [s / 3600, "h", (s / 60) % 60, "m"] : [s / 86400, "d", (s / 3600) % 24, "h"];
  const rest = Math.floor(parts[2]);
  return `${Math.floor(parts[0])}${parts[1]}${rest ? ` ${rest}${parts[3]}` : ""}`;
}

const pad = (number) => String(number).padStart(2, "0");

/** Local time of day. */
export function clockTime(ms, withSeconds = true) {
  const date = new Date(ms);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}${withSeconds ? `:${pad(date.getSeconds())}` : ""}`;
}

/** The zone of all times on the page, as people write it: `CET`, `GMT+1`. */
export const zone = (ms) => ZONE.formatToParts(ms).find((part) => part.type === "timeZoneName")?.value || "local time";
const ZONE = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" });

const UTC = /\b(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d:\d\d)(?:\.\d+)?Z(?!\w)/g;

/** `explain` writes times into its sentences in UTC; on the page they are local, as all others. */
export function localTimes(text) {
  if (!text.includes("Z")) return text;
  return text.replace(UTC, (whole, day, time) => {
    const ms = Date.parse(`${day || new Date().toISOString().slice(0, 10)}T${time}Z`);
    if (Number.isNaN(ms)) return whole;
    // Near now the day goes without saying.
    return !day || Math.abs(Date.now() - ms) < 12 * 3600000 ? clockTime(ms) : dateTime(ms);
  });
}

/** A response's JSON with local times in its sentences; what is copied or parsed stays as it is. */
export async function sentences(response) {
  const isKept = (key) => ["command", "at", "since"].includes(key);
  return JSON.parse(await response.text(), (key, value) => (typeof value === "string" && !isKept(key) ? localTimes(value) : value));
}

/** Date and time, for what may be days ago. */
export function dateTime(ms) {
  const date = new Date(ms);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${clockTime(ms)}`;
}

/** `in 25s`, `12s ago`, `now`. */
export function relative(at, now) {
  const delta = at - now;
  if (Math.abs(delta) < 500) return "now";
  return delta > 0 ? `in ${duration(delta)}` : `${duration(-delta)} ago`;
}

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

let announced = "";
/** Say something to screen readers, once. */
export function announce(text) {
  if (text === announced) return;
  announced = text;
  byId("announcer").textContent = text;
}

const UNREACHABLE = /dial tcp|connection refused|no route to host|i\/o timeout|cannot connect|connection reset|TLS handshake|unreachable/i;

/** One sentence for a person; what a connection or a proxy said is kept behind it. */
function sentenceOf(status, message) {
  if (status === 502 || status === 504 || UNREACHABLE.test(message)) {
    return /10250|containerLogs|kubelet/.test(message) ? "The agent of its node does not respond, so this cannot be read now."
      : "The API server does not respond, so this cannot be read now.";
  }
  return message ? `${message[0].toUpperCase()}${message.slice(1)}` : `The server answered with HTTP ${status}`;
}

/** A response as JSON or text; a failure becomes an Error with the server's one line, its `status` and what was said as `detail`. */
export async function request(path, options = {}) {
  const response = await fetch(path, { credentials: "same-origin", ...options }).catch((error) => {
    throw error.name === "AbortError" ? error : Object.assign(new Error("The server of this page does not respond."), { detail: error.message });
  });
  if (!response.ok) {
    const body = await response.text();
    let message = body.slice(0, 300) || response.statusText;
    try {
      message = JSON.parse(body).error || message;
    } catch {
      // A proxy's answer is not JSON: its text is shown.
    }
    throw Object.assign(new Error(sentenceOf(response.status, message)), { status: response.status, detail: message });
  }
  return response;
}

/** A failure in a sentence, and what was said behind it. */
export function failure(error) {
  const detail = error.detail && error.detail.toLowerCase() !== error.message.toLowerCase() ? error.detail : "";
  return [h("p", { class: "failure", role: "alert" }, error.message), detail && h("details", {}, h("summary", {}, "Details"), h("p", { class: "quiet" }, detail))].filter(Boolean);
}

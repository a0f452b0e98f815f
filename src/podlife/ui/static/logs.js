// The logs of a pod: last lines, previous container, follow. Bounded: the oldest lines go.
import { failure, h, request } from "./dom.js";

const TAIL = 200;
const MOST_CHARACTERS = 400_000;
// Escape sequences and control characters have no meaning on a page.
const CONTROL = /\u001b\[[0-9;?]*[A-Za-z]|[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** @param {import("./life.js").Life} life */
export function showLogs(life, path, signal) {
  const text = h("pre", { class: "log", tabindex: "0", "aria-label": `Log of ${life.name}` });
  const trouble = h("div", {});
  const container = h("select", { "aria-label": "Container", hidden: true });
  const follow = h("input", { type: "checkbox", id: "log-follow", checked: life.to === null });
  const previous = h("input", { type: "checkbox", id: "log-previous" });
  let current = null;
  const read = async () => {
    current?.abort();
    const stop = (current = new AbortController());
    text.textContent = "";
    trouble.replaceChildren();
    const options = `&tail=${TAIL}&follow=${follow.checked ? 1 : 0}&previous=${previous.checked ? 1 : 0}`;
    const chosen = container.value ? `&container=${encodeURIComponent(container.value)}` : "";
    try {
      await pour(await request(path + options + chosen, { signal: AbortSignal.any([signal, stop.signal]) }), text);
      if (!text.textContent) text.append(h("span", { class: "quiet" }, "no output yet"));
    } catch (error) {
      if (stop.signal.aborted || signal.aborted) return;
      const names = namesIn(error.detail || "");
      if (names.length && !container.value) {
        container.replaceChildren(...names.map((name) => h("option", {}, name)));
        container.hidden = false;
        return read();
      }
      // A failure without a detail is the browser's own, of a stream that broke.
      trouble.replaceChildren(...failure(error.detail ? error : Object.assign(new Error("The connection to this log was lost."), { detail: error.message })));
    }
  };
  for (const input of [container, follow, previous]) input.addEventListener("change", read);
  read();
  const tools = h("div", { class: "tools" }, container, h("label", {}, follow, " follow"), h("label", {}, previous, " previous"));
  return h("div", { class: "logs" }, tools, trouble, text);
}

/** Asked without a container, the API server lists those of a pod that has several. */
const namesIn = (message) => [...message.matchAll(/: \[([^\]]+)\]/g)].flatMap((match) => match[1].split(" "));

async function pour(response, element) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 30;
    element.append(value.replace(CONTROL, ""));
    let length = element.textContent.length;
    while (length > MOST_CHARACTERS && element.firstChild !== element.lastChild) {
      length -= element.firstChild.textContent.length;
      element.firstChild.remove();
    }
    if (isAtEnd) element.scrollTop = element.scrollHeight;
  }
}

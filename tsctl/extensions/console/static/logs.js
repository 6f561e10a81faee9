// The last lines of a version's log. A reader at its end stays there, and one who has scrolled up stays where he is.

import { json, modelPath } from "/api.js";
import { fill, h, text } from "/dom.js";

const AGAIN = 5000; // milliseconds

export function logView(element) {
  const shown = h("pre", { tabindex: "0", class: "log", "aria-label": "The last lines of the log" });
  const none = h("p", { class: "faint" }, "Its workers have written nothing.");
  let asked = 0;
  return async (name, version) => {
    if (Date.now() - asked < AGAIN) return;
    asked = Date.now();
    try {
      const { lines } = await json(`logs/${modelPath(name, version)}`);
      const ended = shown.scrollHeight - shown.scrollTop - shown.clientHeight < 8;
      if (element.firstChild !== (lines.length ? shown : none)) fill(element, lines.length ? shown : none);
      text(shown, lines.join("\n"));
      if (ended) shown.scrollTop = shown.scrollHeight;
    } catch { /* told in the header, or the next time */ }
  };
}

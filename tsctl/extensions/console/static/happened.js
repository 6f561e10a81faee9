// Events and failed predictions. A list is written again only if it changed: what a reader has opened or selected stays.

import { modelPath } from "/api.js";
import { fill, h } from "/dom.js";
import { clock } from "/numbers.js";

const MARKS = { warning: "warn", error: "bad" };
const moment = (seconds) => h("time", { class: "faint small", datetime: new Date(seconds * 1000).toISOString() }, clock(seconds));

function whenChanged(element, write) {
  let told = null;
  return (list) => { if (told !== (told = JSON.stringify(list))) write(element, list); };
}

// → a function of the events, the oldest first; `named`: each with a link to its model.
export const eventList = (element, { named = false, none }) => whenChanged(element, (place, list) => {
  fill(place, list.length ? h("ol", { class: "events" }, list.toReversed().map((event) => h("li", {},
    moment(event.time), h("span", { class: `state small ${MARKS[event.level] ?? ""}` }, event.kind),
    h("span", { class: "text small" }, named && event.model && [h("a", { href: `#/models/${modelPath(event.model, event.version)}` }, event.model), ": "], event.text))))
    : h("p", { class: "faint" }, none));
});

// → a function of the failed predictions, the oldest first.
export const errorList = (element) => whenChanged(element, (place, list) => {
  const open = new Set([...place.querySelectorAll("details[open]")].map((each) => each.dataset.key));
  fill(place, list.length ? list.toReversed().map((each) => {
    const key = `${each.time} ${each.request}`;
    const more = each.requests > 1 ? ` and ${each.requests - 1} more of its batch` : "";
    return h("details", { class: "error", "data-key": key, open: open.has(key) },
      h("summary", {}, moment(each.time), h("span", { class: "state bad small" }, each.status), h("span", { class: "text" }, each.message.split("\n")[0].replace(/ \(Request [^)]*\)$/, ""))),
      h("p", { class: "small faint" }, `Request ${each.request}${more}`), h("pre", { tabindex: "0" }, each.traceback || each.message));
  }) : h("p", { class: "faint" }, "No prediction has failed."));
});

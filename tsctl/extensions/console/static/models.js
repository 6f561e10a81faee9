// All models: one row each, those in trouble first. A row stays the same element.

import { json, modelPath } from "/api.js";
import { card, command, fill, h, middle, text } from "/dom.js";
import { eventList } from "/happened.js";
import { figures } from "/history.js";
import { milliseconds, rate } from "/numbers.js";
import { budgetText, stateText, workersText } from "/presence.js";

export const LEVELS = { ready: "good", crashing: "bad", failed: "bad", degraded: "warn", loading: "warn", starting: "warn" };
export const levelOf = (model) => (model.troubles?.length ? "bad" : LEVELS[model.state] ?? "");
const EVENTS = 8;
const MANY = 15; // versions; the events of more stand above them, and are fewer
const COLUMNS = [
  ["Workers", workersText],
  ["Queue", (model) => model.queued],
  ["Running", (model) => model.running, null, "wide-only"],
  ["Requests / s", (model, now) => (model.requests ? rate(now.rate) : model.arrivalsPerSecond.toFixed(1))],
  ["Errors / s", (_, now) => rate(now.errors), (_, now) => now.errors > 0],
  ["p99", (_, now) => milliseconds(now.p99)],
  ["Batch", (model, now) => `${now.batch == null ? "–" : now.batch.toFixed(1)} of ${model.batchSize}`],
];

export function models(main) {
  const rows = new Map();
  const body = h("tbody");
  const count = h("span", { class: "faint small" });
  const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter models by name", oninput: () => latest && update(latest) });
  const table = h("table", { class: "fold" },
    h("thead", {}, h("tr", {}, h("th", {}, "Model"), h("th", {}, "State"), COLUMNS.map(([title]) => h("th", { class: "number" }, title)))), body);
  const listed = h("section", { class: "card" }, table);
  const none = h("div", { class: "card empty" }, h("h1", {}, "No model is registered"),
    h("p", { class: "faint" }, "Register an archive, a handler or a saved model; it appears here."), command("tsctl register MODEL.mar", "tsctl register"));
  const place = h("div");
  const happened = h("div");
  const events = card("Events", happened);
  const tell = eventList(happened, { named: true, none: "Nothing has happened yet." });
  let latest = null, busy = false;
  events.hidden = true;
  fill(main, h("div", { class: "head" }, h("h1", {}, "Models"), count, h("span", { class: "push" }, filter)), place, events);

  function row(model) {
    const cells = COLUMNS.map(([title, , , kind = ""]) => h("td", { class: `number ${kind}`, "data-label": title }));
    const state = h("span", { class: "state" });
    const link = h("a", { class: "name", href: `#/models/${modelPath(model.name, model.version)}`, title: model.name }, middle(model.name));
    const usual = h("span", { class: "tag" }, "default");
    const element = h("tr", {}, h("td", {}, link, h("span", { class: "tag" }, model.version), usual), h("td", {}, state), cells);
    return { element, update(now) {
      const routed = now.share !== undefined;  // its model has a route
      usual.hidden = !routed && (!now.default || latest.models.filter((each) => each.name === now.name).length < 2);
      const share = now.shadow ? "shadow" : `${+(now.share * 100).toPrecision(3)} %`;
      text(usual, !routed ? "default" : now.rollout ? `${share}, ${now.rollout}` : share);
      state.className = `state ${levelOf(now)}`;
      text(state, stateText(now));
      const seen = figures(now.name, now.version);
      COLUMNS.forEach(([, value, alarms], index) => {
        text(cells[index], value(now, seen));
        if (alarms) cells[index].classList.toggle("alarm", alarms(now, seen));
      });
    } };
  }

  function update(status) {
    latest = status;
    const wanted = filter.value.trim().toLowerCase();
    const named = status.models.filter((model) => model.name.toLowerCase().includes(wanted));
    const found = [...named.filter((model) => levelOf(model) === "bad"), ...named.filter((model) => levelOf(model) !== "bad")];
    const keys = new Set(found.map((model) => JSON.stringify([model.name, model.version])));
    for (const [key, { element }] of rows) if (!keys.has(key)) { element.remove(); rows.delete(key); }
    found.forEach((model, index) => {
      const key = JSON.stringify([model.name, model.version]);
      if (!rows.has(key)) rows.set(key, row(model));
      const each = rows.get(key);
      each.update(model);
      if (body.children[index] !== each.element) body.insertBefore(each.element, body.children[index] ?? null);
    });
    const trouble = status.models.filter((model) => levelOf(model) === "bad").length;
    text(count, [`${status.models.length} ${status.models.length === 1 ? "version" : "versions"}`, trouble ? `${trouble} in trouble` : "",
      budgetText(status.memory)].filter(Boolean).join(", "));
    const shown = status.models.length ? listed : none;
    if (place.firstChild !== shown) fill(place, shown);
    const many = status.models.length > MANY;
    if (many !== (place.previousElementSibling === events)) place[many ? "before" : "after"](events);
    follow(many ? EVENTS / 2 : EVENTS);
  }

  async function follow(limit) {
    if (busy) return;
    busy = true;
    try {
      tell((await json(`events?limit=${limit}`)).events);
      events.hidden = false;
    } catch { // a daemon that is away is told of in the header
    } finally {
      busy = false;
    }
  }

  return { update };
}

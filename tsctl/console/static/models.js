// All models: one row each, those in trouble first where the reader asks for it. A row stays the same element.

import { modelPath } from "/api.js";
import { command, fill, h, text } from "/dom.js";

export const LEVELS = { ready: "good", crashing: "bad", failed: "bad", degraded: "warn", loading: "warn", starting: "warn" };
const COLUMNS = [
  ["Workers", (model) => `${model.ready} / ${model.wanted}`],
  ["Queue", (model) => model.queued],
  ["Running", (model) => model.running],
  ["Requests / s", (model) => model.arrivalsPerSecond.toFixed(1)],
  ["Batch size", (model) => model.batchSize],
  ["Delay", (model) => `${model.maxBatchDelay} ms`],
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
  let latest = null;
  fill(main, h("div", { class: "head" }, h("h1", {}, "Models"), count, h("span", { class: "push" }, filter)), place);

  function row(model) {
    const cells = COLUMNS.map(([title]) => h("td", { class: "number", "data-label": title }));
    const state = h("span", { class: "state" });
    const link = h("a", { class: "name", href: `#/models/${modelPath(model.name, model.version)}` }, model.name);
    const usual = h("span", { class: "tag" }, "default");
    const element = h("tr", {}, h("td", {}, link, h("span", { class: "tag" }, model.version), usual), h("td", {}, state), cells);
    return { element, update(now) {
      usual.hidden = !now.default || latest.models.filter((each) => each.name === now.name).length < 2;
      state.className = `state ${LEVELS[now.state] ?? ""}`;
      text(state, now.state);
      COLUMNS.forEach(([, value], index) => text(cells[index], value(now)));
    } };
  }

  function update(status) {
    latest = status;
    const wanted = filter.value.trim().toLowerCase();
    const found = status.models.filter((model) => model.name.toLowerCase().includes(wanted));
    const keys = new Set(found.map((model) => JSON.stringify([model.name, model.version])));
    for (const [key, { element }] of rows) if (!keys.has(key)) { element.remove(); rows.delete(key); }
    found.forEach((model, index) => {
      const key = JSON.stringify([model.name, model.version]);
      if (!rows.has(key)) rows.set(key, row(model));
      const each = rows.get(key);
      each.update(model);
      if (body.children[index] !== each.element) body.insertBefore(each.element, body.children[index] ?? null);
    });
    const trouble = status.models.filter((model) => LEVELS[model.state] === "bad").length;
    text(count, `${status.models.length} ${status.models.length === 1 ? "version" : "versions"}${trouble ? `, ${trouble} in trouble` : ""}`);
    const shown = status.models.length ? listed : none;
    if (place.firstChild !== shown) fill(place, shown);
  }

  return { update };
}

// What `tsctl tune` has measured: its settings, the one to serve, and the command that applies one.

import { ask, json, modelPath } from "/api.js";
import { shell } from "/commands.js";
import { card, command, fill, h } from "/dom.js";
import { milliseconds, rate } from "/numbers.js";

const COLUMNS = [["Setting", ""], ["Batching", "wide-only"], ["Workers", "number wide-only"], ["Requests / s", "number"], ["Gain", "number wide-only"], ["p50", "number wide-only"], ["p99", "number"], ["CPU", "number wide-only"]];
const keyOf = (found) => JSON.stringify([found.model, found.version]);
const setting = (point) => (point.batchSize > 1 ? `${point.batchSize} at most, ${point.maxBatchDelay} ms` : "one by one");
const nameToMeasure = (models) => (models.find((each) => each.state === "ready") ?? models[0])?.name ?? "MODEL";
const workersOf = (point) => `${point.workers} × ${point.threads}`;

export function tune(main, [name, version]) {
  const place = h("div");
  const select = h("select", { "aria-label": "Result", onchange: () => { chosen = null; draw(); } });
  const head = h("span", { class: "push" }, select);
  let results = [], told = "", status = null, chosen = null, busy = false, closed = false;
  let wanted = name && JSON.stringify([name, version]);
  fill(main, h("div", { class: "head" }, h("h1", {}, "Tune"), head), place);
  head.hidden = true;

  async function update(now) {
    status = now;
    if (busy || closed) return;
    busy = true;
    try {
      const found = await json("tuned");
      const names = nameToMeasure(now.models);
      if (closed || told === (told = JSON.stringify([found, found.length ? "" : names]))) return;
      const before = select.value || wanted;
      results = found;
      head.hidden = !found.length;
      fill(select, found.map((each) => h("option", { value: keyOf(each) }, `${each.model} ${each.version}, ${new Date(each.time * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}`)));
      select.value = found.some((each) => keyOf(each) === before) ? before : found.length ? keyOf(found[0]) : "";
      chosen = null;
      draw();
    } finally {
      busy = false;
    }
  }

  function draw() {
    const found = results.find((each) => keyOf(each) === select.value);
    if (!found) {
      const model = nameToMeasure(status?.models ?? []);
      fill(place, h("div", { class: "card empty" }, h("h1", {}, "Nothing has been measured yet"),
        h("p", { class: "faint" }, "This command measures a model with a few settings in turns, and leaves its result here."),
        command(`tsctl tune ${shell(model)} --clients 32`, "tsctl tune")));
      return;
    }
    const at = chosen ?? found.recommended ?? 0;
    const choose = (index) => { chosen = index; draw(); place.querySelector(`input[value="${index}"]`)?.focus(); };
    const rows = found.settings.map((point, index) => {
      const tags = [index === found.recommended && "recommended", index === 0 && "when measured"].filter(Boolean);
      const figures = point.failure ? ["", "", "", "failed", ""]
        : [rate(point.requestsPerSecond), index && point.gain !== null ? `${point.gain.toFixed(2)} ± ${point.noise.toFixed(2)}` : "", milliseconds(point.p50), milliseconds(point.p99), milliseconds(point.cpu)];
      const values = [h("label", {}, h("input", { type: "radio", name: "point", value: String(index), checked: index === at, onchange: () => choose(index) }), " ", setting(point),
        tags.map((words) => h("span", { class: "tag" }, words))), point.batching, workersOf(point), ...figures];
      return h("tr", { class: index === at ? "chosen" : "", title: point.failure }, values.map((value, column) => h("td", { class: COLUMNS[column][1] }, value)));
    });
    fill(place,
      card("Measured in turns", h("p", {}, found.verdict), h("p", { class: "small faint" }, `Load: ${found.load.text}.`), (found.notes ?? []).map((note) => h("p", { class: "small faint" }, `Note: ${note}.`)),
        h("table", { class: "points" }, h("thead", {}, h("tr", {}, COLUMNS.map(([title, kind]) => h("th", { class: kind }, title)))), h("tbody", {}, rows))),
      card("Apply this setting", applying(found, found.settings[at])));
  }

  function applying(found, point) {
    const model = status?.models.find((each) => each.name === found.model && each.version === found.version);
    const named = `${found.model}/${found.version}`;
    const set = `tsctl set ${shell(named)} --batch-size ${point.batchSize} --max-delay ${point.maxBatchDelay} --batching ${point.batching}`;
    const changes = model ? [["batch size", model.batchSize, point.batchSize], ["maximum delay, ms", model.maxBatchDelay, point.maxBatchDelay], ["batching", model.policy, point.batching]]
      .filter(([, now, then]) => now !== then) : [];
    const scale = model && model.wanted !== point.workers;
    const said = h("span", { role: "status", class: "small" });
    const button = h("button", { type: "button", class: "first", disabled: !changes.length, onclick: apply }, "Apply");

    async function apply() {
      button.disabled = true;
      const query = new URLSearchParams({ batch_size: point.batchSize, max_batch_delay: point.maxBatchDelay, batching: point.batching });
      try {
        await ask(`models/${modelPath(found.model, found.version)}?${query}`, { method: "PATCH" });
        fill(said, "Applied.");
      } catch (error) {
        fill(said, error.message);
        button.disabled = false;
      }
    }

    return [
      !model && h("p", {}, `${found.model} ${found.version} is not registered now.`),
      model && (changes.length ? h("ul", { class: "changes" }, changes.map(([title, now, then]) => h("li", {}, `${title}: `, h("span", { class: "faint" }, `${now} → `), h("strong", {}, then))))
        : h("p", { class: "faint" }, "The model is served with this batch size, delay and policy already.")),
      command(set, "tsctl set"),
      scale && [h("p", { class: "small faint" }, "This page does not start or stop workers; the number of workers needs a command of its own:"), command(`tsctl scale ${shell(named)} ${point.workers}`, "tsctl scale")],
      h("div", { class: "field-row" }, button, said),
    ];
  }

  return { update, close() { closed = true; } };
}

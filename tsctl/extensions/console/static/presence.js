// A version that comes and goes, is scaled by its traffic, or shares its model's requests, in words and rows.

import { h } from "/dom.js";
import { figures } from "/history.js";
import { megabytes, milliseconds, rate } from "/numbers.js";

const ABSENT = ["unloaded", "unloading", "held"];
const WHY = { idle: "idle", room: "budget", operator: "by hand" };

// Seconds with the two largest units.
export function span(seconds) {
  const left = Math.max(0, Math.floor(seconds));
  const parts = [[Math.floor(left / 86400), "d"], [Math.floor(left / 3600) % 24, "h"], [Math.floor(left / 60) % 60, "min"], [left % 60, "s"]];
  return parts.filter(([value]) => value).slice(0, 2).map((each) => each.join(" ")).join(" ") || "0 s";
}

// "unloaded, idle": a state, why the version is not in memory, and its troubles.
export function stateText(model) {
  const why = ABSENT.includes(model.residence?.state) ? WHY[model.residence.reason] : "";
  const troubles = (model.troubles ?? []).filter((each) => each !== model.state);
  return [model.state, model.restarting ? `${model.restarting} restarting` : "", why, ...troubles].filter(Boolean).join(", ");
}

export function workersText(model) {
  const range = model.autoscaling ? ` (${model.autoscaling.minWorkers}–${model.autoscaling.maxWorkers})` : "";
  return `${model.ready} / ${model.wanted}${range}`;
}

// Of `--models-memory`; empty without a budget.
export function budgetText(memory) {
  return Object.entries(memory?.budget ?? {}).map(([device, limit]) =>
    `${megabytes(memory.used[device])} of ${megabytes(limit)} budget${device === "host" ? "" : ` ${device}`}`).join(", ");
}

// Of a version that is loaded on demand, or was unloaded by an operator; empty for any other.
export function residenceText(now, time) {
  if (!now || !(now.onDemand || now.held)) return "";
  const parts = [`${now.state === "held" ? "Unloaded" : now.state[0].toUpperCase() + now.state.slice(1)} for ${span(time - now.since)}: ${now.why}`];
  if (now.lastUsed != null) parts.push(`last used ${span(time - now.lastUsed)} ago`);
  if (now.state === "held") parts.push("no request loads it");
  else if (now.state === "loaded" && now.pinned) parts.push("pinned, stays");
  else if (now.unloadsAt != null) parts.push(`unloaded in ${span(now.unloadsAt - time)} unless used`);
  else if (now.state === "loaded" && now.keepAlive === null) parts.push("keep-alive is forever");
  const taken = Object.entries(now.memory).map(([device, bytes]) => `${megabytes(bytes)} on ${device}`);
  if (taken.length) parts.push(`takes ${taken.join(", ")}${ABSENT.includes(now.state) ? " when loaded" : ""}`);
  if (now.template) parts.push(`its template keeps ${megabytes(now.template)}`);
  return parts.join(", ");
}

export function autoscalingText(now, time) {
  if (!now) return "";
  const parts = [`Autoscaling: ${now.minWorkers} to ${now.maxWorkers} workers`, `target ${now.targetQueueMs} ms`,
    now.predictedWaitMs == null ? "no decision yet" : `predicted wait ${now.predictedWaitMs.toFixed(0)} ms`];
  if (now.blocked) parts.push(now.reason.split(", but ").pop());
  else if (now.quietSeconds != null) parts.push(`quiet for ${now.quietSeconds.toFixed(0)} of ${now.takenAwayAfter} s`);
  const last = now.lastChange;
  if (last) parts.push(`from ${last.before} to ${last.after} ${span(time - last.at)} ago (${last.reason})`);
  return parts.join(", ");
}

// The versions that the route of a model names, each with its share; null without a route.
export function routeTable(models, shown) {
  if (shown.share === undefined) return null;
  const versions = models.filter((each) => each.name === shown.name && (each.share || each.shadow || each.version === shown.version));
  const row = (each) => {
    const seen = figures(each.name, each.version);
    return h("tr", {}, h("td", {}, each.version, each.version === shown.version && h("span", { class: "tag" }, "this one")),
      h("td", { class: "number" }, each.shadow ? "shadow" : `${+(each.share * 100).toPrecision(3)} %`), h("td", { class: "number" }, rate(seen.rate)),
      h("td", { class: `number ${seen.errors > 0 ? "alarm" : ""}` }, rate(seen.errors)), h("td", { class: "number" }, milliseconds(seen.p99)));
  };
  return h("table", {}, h("thead", {}, h("tr", {}, ["Version", "Share", "Requests / s", "Errors / s", "p99"].map((title, index) =>
    h("th", { class: index ? "number" : "" }, title)))), h("tbody", {}, versions.map(row)));
}

// The last rollout of this version: its step, and what the test of each condition says; null without one.
export function rolloutLines(now) {
  if (!now) return null;
  const at = now.state === "stepping" ? `, step ${now.step + 1} of ${now.steps.length} at ${now.share} %` : "";
  const waits = now.waitsFor && !now.waitsFor.startsWith("not shown yet: ") ? now.waitsFor : "";
  const said = (each) => (each.requests == null ? "waits for more answers of the versions before"
    : `${each.bad} of ${each.requests}${each.verdict === "open" && each.needed ? `, ${each.needed} good answers to come` : ""}`);
  return [h("p", { class: "below" }, `Rollout: ${now.state}${at}. Steps: ${now.steps.join(", ")} %`),
    now.findings.length > 0 && h("table", {}, h("tbody", {}, now.findings.map((each) => h("tr", {}, h("td", {}, each.condition), h("td", {}, each.verdict), h("td", {}, said(each)))))),
    [waits, now.reason].filter(Boolean).map((words) => h("p", { class: "faint" }, words))];
}

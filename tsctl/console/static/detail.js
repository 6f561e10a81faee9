// One version of a model: its state, charts, batches, workers, events and settings.

import { ask, json, modelPath } from "/api.js";
import { chart } from "/chart.js";
import { bars, card, fill, h, text } from "/dom.js";
import { LEVELS } from "/models.js";
import { clock, latencyBuckets, megabytes, milliseconds, quantile, totals } from "/numbers.js";
import { settingsForm } from "/settings.js";

const FACTS = ["Requests / s", "p50", "p99", "Mean batch", "Queue", "Workers"];

export function detail(main, [name, version]) {
  const path = modelPath(name, version);
  const state = h("span", { class: "state" });
  const notice = h("div");
  const facts = FACTS.map((title) => [title, h("dd", {}, "–")]);
  const rate = h("div", { class: "chart" });
  const latency = h("div", { class: "chart" });
  const reasons = h("div");
  const sizes = h("div");
  const workers = h("div");
  const events = h("div");
  const form = h("div");
  fill(main,
    h("div", { class: "head" }, h("h1", {}, name), h("span", { class: "tag" }, version ?? "default version"), state,
      h("a", { class: "push", href: `#/playground/${path}` }, "Try it in the playground")),
    notice,
    card("", h("dl", { class: "facts" }, facts.map(([title, value]) => h("div", {}, h("dt", {}, title), value)))),
    h("div", { class: "pair" }, card("Requests a second", rate), card("Latency, milliseconds", latency)),
    h("div", { class: "pair" }, card("Batches, by the reason they were sent", reasons), card("Batches, by size", sizes)),
    h("div", { class: "pair" }, card("Workers", workers), card("Events", events)),
    card("Settings", form));
  const rates = chart(rate, ["Requests / s"], (value) => (value == null ? "–" : value.toFixed(1)));
  const latencies = chart(latency, ["p50", "p99"], (value) => (value == null ? "–" : `${value.toFixed(1)} ms`));
  let closed = false, busy = false, before = null, formed = false, told = "", drawn = "";

  async function update(status) {
    if (busy || closed) return;
    busy = true;
    try {
      const [[model], metrics] = await Promise.all([json(`models/${path}`), ask("metrics").then((answer) => answer.text())]);
      if (closed) return;
      await show(model, metrics, status);
    } catch (error) {
      if (!closed && error.status === 404) {
        fill(notice, h("div", { class: "notice" }, `${error.message} `, h("a", { href: "#/models" }, "All models")));
        text(state, "");
        state.className = "state";
      }
    } finally {
      busy = false;
    }
  }

  async function show(model, metrics, status) {
    const own = model.tsctl;
    const now = { time: Date.now() / 1000, pid: status.pid, ...totals(own.batching.sizes), latency: latencyBuckets(metrics, model.modelName, model.modelVersion) };
    const measured = difference(before, now);
    before = now;
    rates.add(now.time, measured.rate);
    latencies.add(now.time, measured.p50 && measured.p50 * 1000, measured.p99 && measured.p99 * 1000);
    state.className = `state ${LEVELS[own.state] ?? ""}`;
    text(state, own.state);
    const ready = model.workers.filter((worker) => worker.status === "READY").length;
    const values = [measured.rate?.toFixed(1) ?? "–", milliseconds(measured.p50), milliseconds(measured.p99), measured.batch?.toFixed(1) ?? "–",
      model.jobQueueStatus.pendingRequests, `${ready} / ${model.minWorkers}`];
    facts.forEach(([, element], index) => text(element, values[index]));
    problems(own);
    if (drawn !== (drawn = JSON.stringify([own.batching.reasons, own.batching.sizes]))) batches(own.batching);
    fill(workers, model.workers.length ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Pid"), h("th", {}, "State"), h("th", { class: "number" }, "Memory"))),
      h("tbody", {}, model.workers.map((worker) => h("tr", {}, h("td", {}, worker.pid ?? "–"), h("td", {}, worker.status.toLowerCase()),
        h("td", { class: "number" }, megabytes(worker.memoryUsage)))))) : h("p", { class: "faint" }, "No worker runs."));
    if (told !== (told = JSON.stringify(own.events ?? []))) happened(own.events ?? []);
    if (!formed) {
      formed = true;
      fill(form, settingsForm(await json("settings"), model.modelName, model.modelVersion, own.settings));
    }
  }

  function problems(own) {
    const words = [own.error, own.lastExit && (own.lastExit.text ?? own.lastExit.how ?? JSON.stringify(own.lastExit))].filter(Boolean);
    const now = words.map((each) => (typeof each === "string" ? each : each.message ?? JSON.stringify(each))).join("\n\n");
    if (notice.textContent !== now) fill(notice, now && h("div", { class: "notice" }, h("pre", {}, now)));
  }

  function batches(batching) {
    const total = Object.values(batching.reasons).reduce((sum, count) => sum + count, 0);
    if (!total) {
      fill(reasons, h("p", { class: "faint" }, "No batch was sent yet. Send a request in the playground."));
      fill(sizes, h("p", { class: "faint" }, "–"));
      return;
    }
    const share = (count) => `${count.toLocaleString("en")} · ${((100 * count) / total).toFixed(0)} %`;
    fill(reasons, bars(Object.entries(batching.reasons).sort((a, b) => b[1] - a[1]).map(([reason, count]) => [batching.meanings[reason] ?? reason, count, share(count)])));
    fill(sizes, bars(Object.entries(batching.sizes).map(([size, count]) => [Number(size), count]).sort((a, b) => a[0] - b[0])
      .map(([size, count]) => [`${size} of ${batching.batchSize}`, count, share(count)])));
  }

  function happened(list) {
    fill(events, list.length ? h("ol", { class: "events" }, list.toReversed().map((event) => h("li", {},
      h("time", { class: "faint small", datetime: new Date(event.time * 1000).toISOString() }, clock(event.time)),
      h("span", { class: `state small ${{ warning: "warn", error: "bad" }[event.level] ?? ""}` }, event.kind),
      h("span", { class: "text small" }, event.text)))) : h("p", { class: "faint" }, "Nothing has happened to this version."));
  }

  return { update, close() { closed = true; rates.close(); latencies.close(); } };
}

// Between two readings of one daemon; all null at first, and after another daemon took over.
function difference(before, now) {
  const requests = before && before.pid === now.pid ? now.requests - before.requests : -1;
  if (requests < 0 || now.time <= before.time) return { rate: null, p50: null, p99: null, batch: null };
  const batches = now.batches - before.batches;
  return {
    rate: requests / (now.time - before.time),
    p50: quantile(before.latency, now.latency, 0.5), p99: quantile(before.latency, now.latency, 0.99),
    batch: batches > 0 ? requests / batches : null,
  };
}

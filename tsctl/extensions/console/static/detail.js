// One version of a model: its state, failures, charts, batches, workers, answers, events, log and settings.

import { ask, json, modelPath } from "/api.js";
import { batchStream } from "/batches.js";
import { chart } from "/chart.js";
import { bars, card, fill, h, middle, text } from "/dom.js";
import { errorList, eventList } from "/happened.js";
import { course, figures, note, recall } from "/history.js";
import { logView } from "/logs.js";
import { LEVELS, levelOf } from "/models.js";
import { megabytes, milliseconds, rate } from "/numbers.js";
import { olderReading } from "/older.js";
import { autoscalingText, residenceText, rolloutLines, routeTable, stateText } from "/presence.js";
import { settingsForm } from "/settings.js";

const FACTS = ["Requests / s", "Errors / s", "p50", "p99", "Mean batch", "Queue", "Workers"];

export function detail(main, [name, version]) {
  const path = modelPath(name, version);
  const state = h("span", { class: "state" });
  const notice = h("div");
  const facts = FACTS.map((title) => [title, h("dd", {}, "–")]);
  const [throughput, latency, stream, reasons, sizes, workers, answers, failed, events, form, log] = Array.from({ length: 11 }, () => h("div"));
  const scaling = h("p", { class: "faint" });
  const residence = h("p", { class: "faint" });
  const verdict = h("p", { class: "verdict" });
  const route = h("div");
  const shared = card("Route", route);
  const sent = card("Batches as they are sent", stream);
  const failures = card("Last failed predictions", failed);
  const answered = card("Answers", answers);
  for (const each of [shared, sent, failures, answered]) each.hidden = true; // until the daemon has told of them
  fill(main,
    h("div", { class: "head" }, h("h1", { title: name }, middle(name)), h("span", { class: "tag" }, version ?? "default version"), state,
      h("a", { class: "push", href: `#/playground/${path}` }, "Try it in the playground")),
    notice,
    card("", h("dl", { class: "facts" }, facts.map(([title, value]) => h("div", {}, h("dt", {}, title), value))), verdict),
    failures,
    shared,
    h("div", { class: "pair" }, card("Requests a second", throughput), card("Latency, milliseconds", latency)),
    sent,
    h("div", { class: "pair" }, card("Batches, by the reason they were sent", reasons), card("Batches, by size", sizes)),
    h("div", { class: "pair" }, h("div", {}, card("Workers", h("div", {}, residence, scaling, workers)), answered), card("Events", events)),
    card("Log", log),
    card("Settings", form));
  throughput.className = latency.className = "chart";
  const rates = chart(throughput, [["Requests / s", "--accent"], ["Errors / s", "--bad"]], rate);
  const latencies = chart(latency, [["p50", "--accent"], ["p99", "--warn"]], (value) => (value == null ? "–" : `${value.toFixed(1)} ms`));
  const batches = batchStream(stream, name, version);
  const tellEvents = eventList(events, { none: "Nothing has happened to this version." });
  const tellErrors = errorList(failed);
  const tellLog = logView(log);
  let closed = false, busy = false, formed = false, drawn = "", counted = "";

  async function update(status) {
    if (busy || closed) return;
    busy = true;
    try {
      const [[model], metrics] = await Promise.all([json(`models/${path}`),
        status.live ? batches.update() : ask("metrics").then((answer) => answer.text())]);
      if (closed) return;
      if (!status.live) note(model.modelName, model.modelVersion, olderReading(model, metrics, status.pid, Date.now() / 1000));
      await show(model, status);
    } catch (error) {
      if (!closed && error.status === 404) {
        fill(notice, h("div", { class: "notice" }, `${error.message} `, h("a", { href: "#/models" }, "All models")));
        notice.className = formed ? "" : "missing";
        text(state, "");
        state.className = "state";
      }
    } finally {
      busy = false;
    }
  }

  async function show(model, status) {
    const own = model.tsctl, key = [model.modelName, model.modelVersion];
    notice.className = "";
    const live = status.live && status.models.find((each) => each.name === key[0] && each.version === key[1]);
    const seen = figures(...key);
    recall(...key);
    tellLog(...key);
    rates.show(course(...key, "rate", "errors"));
    latencies.show(course(...key, "p50", "p99").map((values, index) => (index ? values.map((value) => value && value * 1000) : values)));
    state.className = `state ${live ? levelOf(live) : LEVELS[own.state] ?? ""}`;
    text(state, live ? stateText(live) : own.state);
    const ready = model.workers.filter((worker) => worker.status === "READY").length;
    const values = [rate(seen.rate), rate(seen.errors), milliseconds(seen.p50), milliseconds(seen.p99), seen.batch?.toFixed(1) ?? "–",
      model.jobQueueStatus.pendingRequests, `${ready} / ${own.workers.length}`];
    facts.forEach(([, element], index) => text(element, values[index]));
    facts[1][1].classList.toggle("alarm", seen.errors > 0);
    problems(own);
    const time = status.time ?? Date.now() / 1000;
    for (const [element, words] of [[scaling, autoscalingText(own.autoscaling, time)], [residence, residenceText(own.residence, time)],
      [verdict, own.verdict]]) {
      text(element, words ?? "");
      element.hidden = !words;
    }
    const routed = live && [routeTable(status.models, live), rolloutLines(live.evidence)].filter(Boolean).flat(Infinity);
    shared.hidden = !routed?.length;
    fill(route, routed || []);
    if (drawn !== (drawn = JSON.stringify([own.batching.reasons, own.batching.ranges]))) counts(own.batching);
    fill(workers, workerTable(status.gpus, live ? live.workers.map((each) => [placeOf(each), each.state.toLowerCase(), each.memory, each.cpuSeconds, each.gpuMemory])
      : model.workers.map((each) => [placeOf(each), each.status.toLowerCase(), each.memoryUsage, null, each.gpuMemory])));
    sent.hidden = answered.hidden = !live;
    failures.hidden = !own.errors?.length;
    if (live && counted !== (counted = JSON.stringify([live.requests, live.refused, live.expired]))) answersOf(live);
    tellErrors(own.errors ?? []);
    tellEvents(own.events ?? []);
    if (!formed) {
      formed = true;
      fill(form, settingsForm(await json("settings"), model.modelName, model.modelVersion, own.settings));
    }
  }

  function problems(own) {
    const error = [own.error?.message, own.error?.traceback].filter(Boolean).join("\n");
    const exit = own.lastExit && `The last worker that ended: ${own.lastExit}`;
    const now = [error, exit].filter(Boolean).join("\n\n");
    if (notice.textContent !== now) fill(notice, now && h("div", { class: "notice" }, h("pre", {}, now)));
  }

  function counts(batching) {
    const total = Object.values(batching.reasons).reduce((sum, count) => sum + count, 0);
    if (!total) {
      fill(reasons, h("p", { class: "faint" }, "No batch was sent yet."));
      fill(sizes, h("p", { class: "faint" }, "–"));
      return;
    }
    const share = (count) => `${count.toLocaleString("en")} · ${count < total / 100 ? "<1" : Math.round((100 * count) / total)} %`;
    fill(reasons, bars(Object.entries(batching.reasons).sort((a, b) => b[1] - a[1]).map(([reason, count]) => [batching.meanings[reason] ?? reason, count, share(count)])));
    fill(sizes, bars(batching.ranges.map(({ sizes: some, batches: count }) => [`${some} of ${batching.batchSize}`, count, share(count)])));
  }

  function answersOf(live) {
    const rows = [
      ...Object.entries(live.requests.codes).map(([code, count]) => [`Status ${code}`, count, code >= "500"]),
      ...Object.entries(live.refused).map(([reason, count]) => [`Refused: ${reason.replaceAll("_", " ")}`, count, true]),
      ...Object.entries(live.expired).map(([where, count]) => [`Expired in the ${where.replaceAll("_", " ")}`, count, true]),
    ].filter(([, count]) => count > 0);
    fill(answers, rows.length ? h("table", {}, h("tbody", {}, rows.map(([words, count, bad]) => h("tr", {},
      h("td", {}, h("span", { class: `state ${bad ? "bad" : "good"}` }, words)), h("td", { class: "number" }, count.toLocaleString("en"))))))
      : h("p", { class: "faint" }, "No request was answered yet."));
  }

  return { update, close() { closed = true; rates.close(); latencies.close(); } };
}

// Its pid, and the node of a cluster that it runs on.
function placeOf(worker) {
  return !worker.pid ? "–" : worker.node ? `${worker.pid} on ${worker.node}` : worker.pid;
}

// The GPUs of a worker, each with its name, and what the worker holds of its memory: "0 (NVIDIA H100): 3072 MiB of 81559 MiB".
function gpusOf(held, gpus) {
  return Object.entries(held ?? {}).map(([gpu, bytes]) => {
    const { name, memory } = gpus?.[gpu] ?? {};
    return `${gpu}${name ? ` (${name})` : ""}${bytes == null ? "" : `: ${megabytes(bytes)}${memory ? ` of ${megabytes(memory)}` : ""}`}`;
  }).join(", ") || "–";
}

function workerTable(machine, rows) {
  if (!rows.length) return h("p", { class: "faint" }, "No worker runs.");
  const gpus = rows.some(([, , , , held]) => Object.keys(held ?? {}).length);
  const titles = ["Pid", "State", "Memory", "Processor time", ...(gpus ? ["GPU"] : [])];
  const cells = ([pid, state, memory, seconds, held]) => [pid, state, memory ? megabytes(memory) : "–", seconds == null ? "–" : `${seconds.toFixed(1)} s`,
    ...(gpus ? [gpusOf(held, machine)] : [])];
  return h("table", {}, h("thead", {}, h("tr", {}, titles.map((title, index) => h("th", { class: index > 1 ? "number" : "" }, title)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, cells(row).map((cell, index) => h("td", { class: index > 1 ? "number" : "" }, cell))))));
}

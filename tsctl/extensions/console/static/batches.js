// Batches as they are sent: the size of each, why it was due, and how long it took.

import { json } from "/api.js";
import { fill, h } from "/dom.js";
import { clock, milliseconds } from "/numbers.js";

const DRAWN = 90; // batches in the picture
const LISTED = 8; // in the table
const WORDS = {
  full: () => "full", half: () => "half of the clients", delay: (batch) => `waited ${milliseconds(batch.waitedMs / 1000)}`, deadline: () => "an answer was nearly due",
  nobody_left: () => "nobody else is coming", no_gain: () => "waiting would not pay", split: () => "shared by idle workers",
  ahead: () => "for a worker that is busy", at_once: () => "sent at once", retry: () => "retried alone", suspect: () => "a suspect, alone",
  solo: () => "a description, alone", stopping: () => "the version stops",
};
const LEVEL = { full: "full", delay: "late", deadline: "late", retry: "odd", suspect: "odd" };
const COLUMNS = [["Sent", "faint"], ["Size", ""], ["Why it was sent", ""], ["Oldest waited", "number wide-only"], ["Took", "number"], ["Worker", "number wide-only"]];

export const why = (batch) => (WORDS[batch.reason] ?? (() => batch.meaning || batch.reason))(batch);

function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function picture(batches) {
  const bars = batches.map((batch, index) => {
    const high = Math.max(2, (64 * batch.size) / Math.max(batch.limit, 1));
    const words = svg("title", {});
    words.textContent = `${batch.size} of ${batch.limit}: ${batch.meaning}`;
    return svg("rect", {
      x: `${(100 * (DRAWN - batches.length + index)) / DRAWN}%`, y: 66 - high, width: `${75 / DRAWN}%`, height: high, rx: 1,
      class: batch.failed ? "failed" : LEVEL[batch.reason] ?? "",
    }, words);
  });
  return svg("svg", { class: "strip", role: "img", "aria-label": `The sizes of the last ${batches.length} batches` }, ...bars);
}

function row(batch) {
  const values = [clock(batch.time, true), `${batch.size} of ${batch.limit}`, why(batch), milliseconds(batch.waitedMs / 1000),
    batch.tookMs == null ? "no answer" : milliseconds(batch.tookMs / 1000), batch.worker || "–"];
  return h("tr", { title: batch.meaning }, values.map((value, index) => h("td", { class: COLUMNS[index][1] },
    value, index === 2 && batch.failed > 0 && h("span", { class: "state bad tagged" }, `${batch.failed} failed`))));
}

// Follows the batches of one version in an element.
export function batchStream(element, name, version) {
  let last = 0, kept = [], number = "";

  function draw() {
    if (!kept.length) {
      fill(element, h("p", { class: "faint" }, "No batch was sent yet. Send a request in the playground."));
      return;
    }
    const key = (words, level) => h("span", { class: `key ${level}` }, words);
    fill(element, picture(kept.slice(-DRAWN)),
      h("p", { class: "small faint keys" }, key("full", "full"), key("the delay was over", "late"), key("no reason to wait", ""), key("with errors", "failed")),
      h("table", { class: "batches" }, h("thead", {}, h("tr", {}, COLUMNS.map(([title, kind]) => h("th", { class: kind }, title)))),
        h("tbody", {}, kept.slice(-LISTED).toReversed().map(row))));
  }

  draw();
  return {
    async update() {
      const found = await json(`batches?${new URLSearchParams({ model: version ? `${name}/${version}` : name, after: last })}`);
      const fresh = found.batches.filter((batch) => batch.sequence > last);
      last = found.last;
      if (!fresh.length) return;
      if (number !== (number = fresh.at(-1).version)) kept = [];
      kept = [...kept, ...fresh].slice(-DRAWN);
      draw();
    },
  };
}


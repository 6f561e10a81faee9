// The frontier of `tsctl tune` as a picture: capacity to the right, p99 upwards; a point for each setting.

import { h } from "/dom.js";
import { milliseconds } from "/numbers.js";

const HIGH = 300, LEFT = 56, RIGHT = 20, TOP = 16, BOTTOM = 44; // pixels
const WIDE = 20; // a range of p99 beyond this ratio is drawn by its logarithm

function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// → 1, 2 or 5 times a power of ten, so that at most `most` of them fit.
function step(range, most) {
  const rough = Math.max(range, Number.MIN_VALUE) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough);
}

function ticks(low, high, most) {
  const by = step(high - low, most);
  return Array.from({ length: Math.floor(high / by + 1e-9) - Math.ceil(low / by - 1e-9) + 1 }, (_, index) => (Math.ceil(low / by - 1e-9) + index) * by);
}

function decades(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const digit of [1, 2, 5]) if (digit * 10 ** power >= low && digit * 10 ** power <= high) found.push(digit * 10 ** power);
  }
  return found;
}

// marks: [{ point, words, kind }]; the chosen one is `chosen`. `choose(index)` when a point is clicked.
export function frontierPicture(marks, chosen, choose, width) {
  const latencies = marks.map(({ point }) => point.p99), capacities = marks.map(({ point }) => point.capacity);
  const logarithmic = Math.max(...latencies) > WIDE * Math.min(...latencies);
  const low = logarithmic ? Math.min(...latencies) / 1.3 : 0, high = Math.max(...latencies) * (logarithmic ? 1.3 : 1.1), most = Math.max(...capacities) * 1.06;
  const scale = logarithmic ? Math.log : (value) => value;
  const x = (value) => LEFT + ((width - LEFT - RIGHT) * value) / most;
  const y = (value) => TOP + (HIGH - TOP - BOTTOM) * (1 - (scale(value) - scale(low)) / (scale(high) - scale(low)));
  const words = (at, text, attributes) => { const element = svg("text", { ...at, ...attributes }); element.textContent = text; return element; };
  const grid = [
    ...(logarithmic ? decades(low, high) : ticks(0, high, 5)).map((value) => [svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
      words({ x: LEFT - 8, y: y(value) + 4 }, value ? milliseconds(value) : "0", { "text-anchor": "end" })]),
    ...ticks(0, most, width < 480 ? 4 : 8).map((value) => [svg("line", { x1: x(value), x2: x(value), y1: TOP, y2: HIGH - BOTTOM }),
      words({ x: x(value), y: HIGH - BOTTOM + 16 }, value.toLocaleString("en"), { "text-anchor": "middle" })]),
  ].flat();
  const dots = marks.map(({ point, words: title, kind }, index) => {
    const said = svg("title", {});
    said.textContent = title;
    const at = { cx: x(point.capacity), cy: y(point.p99) };
    return svg("g", { class: `dot ${kind} ${index === chosen ? "chosen" : ""}`, onclick: () => choose(index) }, said,
      svg("circle", { ...at, r: 14, class: "reach" }), index === chosen ? svg("circle", { ...at, r: 11, class: "ring" }) : "", svg("circle", { ...at, r: 6 }));
  });
  const chosenWords = marks[chosen] && (() => {
    const { point } = marks[chosen], left = x(point.capacity) > width / 2;
    return words({ x: x(point.capacity) + (left ? -18 : 18), y: y(point.p99) + (y(point.p99) < TOP + 24 ? 20 : -10) }, `${point.batchSize} at most, ${point.maxBatchDelay} ms`,
      { class: "chosen-words", "text-anchor": left ? "end" : "start" });
  })();
  return h("div", { class: "frontier" }, svg("svg", { width, height: HIGH, role: "img", "aria-label": `${marks.length} settings by capacity and p99; the table names them` },
    svg("g", { class: "grid" }, ...grid), words({ x: (LEFT + width - RIGHT) / 2, y: HIGH - 6 }, "Capacity, requests a second", { "text-anchor": "middle", class: "axis" }),
    words({ x: LEFT + 6, y: TOP - 4 }, "p99", { class: "axis" }), ...dots, chosenWords || ""));
}

// What was read of each version while the page is open: the figures of the last seconds, and their course.

import { NOTHING, between, reading } from "/numbers.js";

const KEPT = 300; // points of a chart
const WINDOW = 10; // readings that a figure covers; they come once a second
const versions = new Map();

const keyOf = (name, version) => JSON.stringify([name, version]);

export function noteAll(live) {
  const there = new Set(live.models.map(({ name, version }) => keyOf(name, version)));
  for (const key of versions.keys()) if (!there.has(key)) versions.delete(key);
  for (const model of live.models) note(model.name, model.version, reading(model, live.pid, live.time));
}

export function note(name, version, now) {
  const key = keyOf(name, version);
  if (!versions.has(key)) versions.set(key, { readings: [], points: [] });
  const { readings, points } = versions.get(key);
  const step = between(readings.at(-1), now);
  if (readings.length && readings.at(-1).time >= now.time) return;
  if (readings.length && step === NOTHING) readings.length = 0; // another daemon, or the version was registered again
  readings.push(now);
  if (readings.length > WINDOW) readings.shift();
  points.push({ time: now.time, ...step });
  if (points.length > KEPT) points.shift();
}

// → { rate, errors, refused, p50, p99, batch } of the last seconds.
export function figures(name, version) {
  const readings = versions.get(keyOf(name, version))?.readings ?? [];
  return readings.length ? between(readings[0], readings.at(-1)) : NOTHING;
}

// → [times, values of each name, …] for a chart.
export function course(name, version, ...names) {
  const points = versions.get(keyOf(name, version))?.points ?? [];
  return ["time", ...names].map((each) => points.map((point) => point[each]));
}

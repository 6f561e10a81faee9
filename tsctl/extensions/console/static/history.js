// What was read of each version while the page is open: the figures of the last seconds, and their course; before that,
// what the daemon remembers.

import { json, modelPath } from "/api.js";
import { NOTHING, between, reading } from "/numbers.js";

const KEPT = 300; // points of a chart
const WINDOW = 10; // readings that a figure covers; they come once a second
const AGAIN = 30000; // milliseconds until the daemon is asked again what it remembers
const versions = new Map();
const remembered = new Map(); // key → { asked, points }: ten seconds each, of the last 15 minutes
let last = null; // { time, pid } of the reading before

const keyOf = (name, version) => JSON.stringify([name, version]);

export function noteAll(live) {
  const there = new Set(live.models.map(({ name, version }) => keyOf(name, version)));
  for (const key of versions.keys()) if (!there.has(key)) versions.delete(key);
  for (const model of live.models) {
    const now = reading(model, live.pid, live.time);
    const fresh = !versions.has(keyOf(model.name, model.version)) && last?.pid === live.pid; // registered since the last reading
    if (fresh) note(model.name, model.version, { ...now, time: last.time, requests: 0, errors: 0, refused: 0, batches: 0, batched: 0, counts: now.counts.map(() => 0) });
    note(model.name, model.version, now);
    versions.get(keyOf(model.name, model.version)).recent = model.recent;
  }
  last = { time: live.time, pid: live.pid };
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

// → { rate, errors, refused, p50, p99, batch } of the last seconds; of the last minute, as the daemon tells it, at first.
export function figures(name, version) {
  const { readings = [], recent } = versions.get(keyOf(name, version)) ?? {};
  if (readings.length > 1) return between(readings[0], readings.at(-1));
  if (!recent) return NOTHING;
  const seconds = (value) => (value == null ? null : value / 1000);
  return { ...NOTHING, rate: recent.requests / recent.seconds, errors: recent.errors / recent.seconds, p50: seconds(recent.p50Ms), p99: seconds(recent.p99Ms) };
}

// Reads what the daemon remembers of a version, now and then. A daemon that remembers nothing is no error.
export async function recall(name, version) {
  const key = keyOf(name, version), now = Date.now();
  if (now - (remembered.get(key)?.asked ?? 0) < AGAIN) return;
  const known = { asked: now, points: remembered.get(key)?.points ?? [] };
  remembered.set(key, known);
  try {
    const { every, models: [told] } = await json(`history?model=${modelPath(name, version)}`);
    const seconds = (value) => (value == null ? null : value / 1000);
    known.points = told.time.map((time, index) => ({ time, rate: told.requestsPerSecond[index], errors: told.errorsPerSecond[index],
      p50: seconds(told.p50Ms[index]), p99: seconds(told.p99Ms[index]) }))
      .flatMap((point, index, all) => (index && point.time - all[index - 1].time > 3 * every // no daemon was there: no line
        ? [{ time: point.time - every, rate: null, errors: null, p50: null, p99: null }, point] : [point]));
  } catch { /* the chart begins now */ }
}

// → [times, values of each name, …] for a chart.
export function course(name, version, ...names) {
  const seen = versions.get(keyOf(name, version))?.points ?? [];
  const begin = seen[0]?.time ?? Infinity;
  const points = [...(remembered.get(keyOf(name, version))?.points ?? []).filter((point) => point.time < begin), ...seen];
  return ["time", ...names].map((each) => points.map((point) => point[each]));
}

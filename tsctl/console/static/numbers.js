// Rates and percentiles of the last seconds, from two readings of what the daemon only counts up.

const BUCKET = /^tsctl_request_latency_seconds_bucket\{([^}]*)\} (\S+)$/;
const unescape = (text) => text.replace(/\\(.)/g, (_, each) => (each === "n" ? "\n" : each));

// → [[upper bound in seconds, requests up to it], …] of one version, all outcomes together, from the text of /metrics.
export function latencyBuckets(metrics, name, version) {
  const found = new Map();
  for (const line of metrics.split("\n")) {
    const match = BUCKET.exec(line);
    if (!match) continue;
    const labels = Object.fromEntries([...match[1].matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((each) => [each[1], unescape(each[2])]));
    if (labels.model === name && labels.version === version) {
      const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
      found.set(bound, (found.get(bound) ?? 0) + Number(match[2]));
    }
  }
  return [...found].sort((a, b) => a[0] - b[0]);
}

// → seconds, interpolated within a bucket as Prometheus does; null if there was no request in between, or the daemon is another.
export function quantile(before, after, q) {
  if (before.length !== after.length || !after.length) return null;
  const counts = after.map(([bound, count], index) => [bound, count - before[index][1]]);
  const total = counts.at(-1)[1];
  if (total <= 0) return null;
  let low = 0, under = 0;
  for (const [bound, count] of counts) {
    if (count >= q * total) {
      return bound === Infinity ? low : low + ((bound - low) * (q * total - under)) / Math.max(count - under, 1);
    }
    low = bound;
    under = count;
  }
  return low;
}

// → { requests, batches } since the start, of a describe document's sizes: {"batch size": batches}.
export function totals(sizes) {
  const rows = Object.entries(sizes).map(([size, count]) => [Number(size), count]);
  return { requests: rows.reduce((sum, [size, count]) => sum + size * count, 0), batches: rows.reduce((sum, [, count]) => sum + count, 0) };
}

export function milliseconds(seconds) {
  if (seconds == null) return "–";
  const value = seconds * 1000;
  return value >= 10000 ? `${(value / 1000).toFixed(1)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

export const megabytes = (bytes) => `${Math.round(bytes / 1048576)} MiB`;
export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hourCycle: "h23" });

// Rates and percentiles of the last seconds, from two readings of what the daemon only counts up; and numbers as words.

const sum = (values) => values.reduce((all, each) => all + each, 0);

// A reading of one version: { time, pid, requests, errors, refused, batches, batched, bounds, counts }; bounds in seconds,
// counts of the answers up to each bound and beyond the last one.
export function reading(live, pid, time) {
  return {
    time, pid, requests: live.requests.total, refused: sum(Object.values(live.refused)),
    errors: sum(Object.entries(live.requests.codes).map(([code, count]) => (code >= "500" ? count : 0))),
    batches: live.batches.total, batched: live.batches.requests, bounds: live.latency.bounds, counts: live.latency.counts,
  };
}

export const NOTHING = { rate: null, errors: null, refused: null, p50: null, p99: null, batch: null };

// Between two readings; all null if there is one only, or the daemon or the version is another.
export function between(before, now) {
  if (!before || before.pid !== now.pid || now.requests < before.requests || now.time <= before.time) return NOTHING;
  const seconds = now.time - before.time;
  const counts = before.counts.length === now.counts.length ? now.counts.map((count, index) => count - before.counts[index]) : [];
  const batches = now.batches - before.batches;
  return {
    rate: (now.requests - before.requests) / seconds,
    errors: now.errors == null ? null : (now.errors - before.errors) / seconds,
    refused: now.refused == null ? null : (now.refused - before.refused) / seconds,
    p50: quantile(now.bounds, counts, 0.5), p99: quantile(now.bounds, counts, 0.99),
    batch: batches > 0 ? (now.batched - before.batched) / batches : null,
  };
}

// → seconds, interpolated within a bucket as Prometheus does; null without answers.
export function quantile(bounds, counts, q) {
  const total = sum(counts);
  if (total <= 0) return null;
  let under = 0;
  for (const [index, count] of counts.entries()) {
    if (under + count >= q * total) {
      const low = index ? bounds[index - 1] : 0;
      return index < bounds.length ? low + ((bounds[index] - low) * (q * total - under)) / Math.max(count, 1) : low;
    }
    under += count;
  }
  return bounds.at(-1);
}

export function milliseconds(seconds) {
  if (seconds == null) return "–";
  const value = seconds * 1000;
  return value >= 10000 ? `${(value / 1000).toFixed(1)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

export function rate(value) {
  if (value == null) return "–";
  return value >= 100 || value === 0 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

export const megabytes = (bytes) => `${Math.round(bytes / 1048576)} MiB`;
export const clock = (seconds, fraction = false) => new Date(seconds * 1000).toLocaleTimeString("en-GB", fraction
  ? { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 } : undefined);

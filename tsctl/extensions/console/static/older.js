// A reading of one version from a daemon that has no /tsctl/live: of its describe document and the text of /metrics.

const BUCKET = /^tsctl_request_latency_seconds_bucket\{([^}]*)\} (\S+)$/;
const unescape = (text) => text.replace(/\\(.)/g, (_, each) => (each === "n" ? "\n" : each));

// → [[upper bound in seconds, requests up to it], …], all outcomes together.
function buckets(metrics, name, version) {
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

// What such a daemon does not tell, errors and refusals, is null.
export function olderReading(model, metrics, pid, time) {
  const latency = buckets(metrics, model.modelName, model.modelVersion);
  const sizes = Object.entries(model.tsctl.batching.sizes);
  const requests = sizes.reduce((all, [size, count]) => all + Number(size) * count, 0);
  return {
    time, pid, requests, errors: null, refused: null, batched: requests, batches: sizes.reduce((all, [, count]) => all + count, 0),
    bounds: latency.slice(0, -1).map(([bound]) => bound),
    counts: latency.map(([, count], index) => count - (index ? latency[index - 1][1] : 0)),
  };
}

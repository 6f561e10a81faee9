// A line chart of the last minutes, by uPlot; its colours are those of the page, also after the scheme changes.

/* global uPlot */
const HIGH = 150; // pixels, without the legend
const LEAST = 60; // seconds
const dark = matchMedia("(prefers-color-scheme: dark)");
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// series: [words, name of a colour, …]; show: a value in words.
export function chart(element, series, show) {
  let data = [[], ...series.map(() => [])];
  let plot = null;

  function draw() {
    plot?.destroy();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    plot = new uPlot({
      width: Math.max(element.clientWidth, 100), height: HIGH,
      cursor: { y: false, points: { size: 6 } },
      scales: { x: { range: (_, least, most) => (most == null ? [0, LEAST] : [Math.min(least, most - LEAST), most]) }, y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] } },
      axes: [{ ...axis, values: "{HH}:{mm}:{ss}", space: 90, size: 30 }, { ...axis, size: 44 }],
      series: [{ value: "{HH}:{mm}:{ss}" }, ...series.map(([label, name]) => ({
        label, stroke: colour(name), width: 1.75, spanGaps: false, points: { show: false }, value: (_, value) => show(value),
      }))],
    }, data, element);
  }

  const resized = new ResizeObserver(() => plot?.setSize({ width: Math.max(element.clientWidth, 100), height: HIGH }));
  resized.observe(element);
  dark.addEventListener("change", draw);
  draw();
  return {
    show(now) { plot.setData(data = now); },
    close() { resized.disconnect(); dark.removeEventListener("change", draw); plot.destroy(); },
  };
}

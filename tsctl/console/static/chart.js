// A line chart of the last minutes, by uPlot; its colours are those of the page, also after the scheme changes.

/* global uPlot */
const KEPT = 300; // points
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function chart(element, series, show) {
  const data = [[], ...series.map(() => [])];
  let plot = null;

  function draw() {
    plot?.destroy();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const strokes = [colour("--accent"), colour("--warn")];
    plot = new uPlot({
      width: Math.max(element.clientWidth, 100), height: 150,
      cursor: { y: false, points: { size: 6 } },
      scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] } },
      axes: [{ ...axis, values: "{HH}:{mm}:{ss}", space: 90, size: 30 }, { ...axis, size: 44 }],
      series: [{ value: "{HH}:{mm}:{ss}" }, ...series.map((label, index) => ({
        label, stroke: strokes[index], width: 1.75, spanGaps: false, points: { show: false }, value: (_, value) => show(value),
      }))],
    }, data, element);
  }

  const resized = new ResizeObserver(() => plot?.setSize({ width: Math.max(element.clientWidth, 100), height: 150 }));
  resized.observe(element);
  dark.addEventListener("change", draw);
  draw();
  return {
    add(time, ...values) {
      [time, ...values].forEach((value, index) => { data[index].push(value); if (data[index].length > KEPT) data[index].shift(); });
      plot.setData(data);
    },
    close() { resized.disconnect(); dark.removeEventListener("change", draw); plot.destroy(); },
  };
}

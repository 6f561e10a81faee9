// A handler's answer for the eye: bars of labels, boxes and masks over the picture, else text.

import { bars, h } from "/dom.js";

const MOST = 10; // bars
const CROP = 224; // the built-in segmenter's square: the centre, 224 of the 256 that the shorter side is scaled to
const number = (value) => typeof value === "number" && Number.isFinite(value);

export function kindOf(document) {
  if (Array.isArray(document)) {
    if (document.length && document.every((each) => boxOf(each))) return "boxes";
    if (document[0]?.[0]?.length === 2 && number(document[0][0][0]) && document.every((row) => row?.length === document[0].length)) return "mask";
    return "json";
  }
  const values = document && typeof document === "object" ? Object.values(document) : [];
  return values.length > 1 && values.every((value) => number(value) && value >= 0) ? "labels" : "json";
}

// {label: [left, top, right, bottom], score} → its parts; null for anything else.
function boxOf(each) {
  if (!each || typeof each !== "object" || !number(each.score)) return null;
  const [label, box] = Object.entries(each).find(([key]) => key !== "score") ?? [];
  return Array.isArray(box) && box.length === 4 && box.every(number) ? { label, box, score: each.score } : null;
}

export async function shownAnswer(document, picture) {
  const kind = kindOf(document);
  if (kind === "labels") {
    const rows = Object.entries(document).sort((a, b) => b[1] - a[1]).slice(0, MOST);
    const share = rows.every(([, value]) => value <= 1);
    return bars(rows.map(([label, value]) => [label, value, share ? `${(100 * value).toFixed(1)} %` : String(value)]), 0);
  }
  if ((kind === "boxes" || kind === "mask") && picture) {
    const canvas = await canvasOf(picture);
    if (canvas && kind === "boxes") return h("div", {}, boxes(canvas, document.map(boxOf)), legend(document.map(boxOf)));
    if (canvas) return mask(canvas, document);
  }
  return null;
}

// Pixels as the handler sees them: Pillow does not turn a picture as its EXIF says.
async function canvasOf(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: "none" });
  } catch {
    return null;
  }
  const canvas = h("canvas", { class: "picture", width: bitmap.width, height: bitmap.height, role: "img" });
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  return canvas;
}

const hue = (index) => `hsl(${(index * 137.5 + 215) % 360} 80% 55%)`;

function boxes(canvas, found) {
  const context = canvas.getContext("2d");
  const unit = Math.max(canvas.width, canvas.height) / 400;
  const labels = [...new Set(found.map(({ label }) => label))];
  context.font = `600 ${11 * unit}px system-ui, sans-serif`;
  context.lineWidth = 2 * unit;
  context.textBaseline = "top";
  for (const { label, box: [left, top, right, bottom], score } of found) {
    const words = `${label} ${(100 * score).toFixed(0)} %`;
    const high = 16 * unit;
    const above = top >= high ? top - high : top;
    context.strokeStyle = context.fillStyle = hue(labels.indexOf(label));
    context.strokeRect(left, top, right - left, bottom - top);
    context.fillRect(left - unit, above, context.measureText(words).width + 8 * unit, high);
    context.fillStyle = "#fff";
    context.fillText(words, left + 3 * unit, above + 2.5 * unit);
  }
  canvas.setAttribute("aria-label", `The picture with ${found.length} boxes`);
  return canvas;
}

function legend(found) {
  return bars(found.toSorted((a, b) => b.score - a.score).slice(0, MOST).map(({ label, score }) => [label, score, `${(100 * score).toFixed(1)} %`]), 0);
}

function mask(canvas, rows) {
  const over = h("canvas", { width: rows[0].length, height: rows.length });
  const context = over.getContext("2d");
  const pixels = context.createImageData(over.width, over.height);
  const classes = [...new Set(rows.flat().map(([number]) => number))].filter(Boolean).sort((a, b) => a - b);
  const colours = new Map(classes.map((each, index) => [each, [[48, 86, 211], [230, 126, 34], [26, 160, 90], [192, 41, 160], [220, 190, 30]][index % 5]]));
  rows.flat().forEach(([number, probability], index) => {
    if (number) pixels.data.set([...colours.get(number), Math.round(170 * Math.min(probability ?? 1, 1))], index * 4); // class 0 is the background
  });
  context.putImageData(pixels, 0, 0);
  const side = rows.length === CROP && rows[0].length === CROP ? (Math.min(canvas.width, canvas.height) * CROP) / 256 : 0;
  const [width, height] = side ? [side, side] : [canvas.width, canvas.height];
  canvas.getContext("2d").drawImage(over, (canvas.width - width) / 2, (canvas.height - height) / 2, width, height);
  canvas.setAttribute("aria-label", `The picture with a mask of ${classes.length} classes`);
  return h("div", {}, canvas, h("p", { class: "small faint" }, classes.length ? `Classes: ${classes.join(", ")}` : "Background only"));
}

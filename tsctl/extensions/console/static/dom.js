// Elements from our own words; whatever comes from elsewhere becomes a text node.

export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "value" || key === "disabled" || key === "checked") element[key] = value;
    else if (value !== false && value != null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

// Writes only what changed: a selection, and a screen reader, stay where they are.
export function text(element, words) {
  const now = String(words);
  if (element.textContent !== now) element.textContent = now;
  return element;
}

// A long name without its middle: names of one project differ at their ends.
export const middle = (name, most = 36) => (name.length <= most ? name : `${name.slice(0, most / 2)}…${name.slice(1 - most / 2)}`);

export function card(title, ...children) {
  return h("section", { class: "card" }, title && h("h2", {}, title), ...children);
}

// One row for each [words, value, shown]; the bar is SVG, as a style attribute would need a laxer policy.
export function bars(rows, marked = -1) {
  const most = Math.max(...rows.map(([, value]) => value), Number.MIN_VALUE);
  return h("div", { class: "bars" }, rows.map(([words, value, shown], index) => {
    const track = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    track.setAttribute("class", index === marked ? "track first" : "track");
    track.setAttribute("aria-hidden", "true");
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    bar.setAttribute("width", `${Math.max(0, (100 * value) / most)}%`);
    bar.setAttribute("height", "12");
    bar.setAttribute("rx", "3");
    track.append(bar);
    return [h("span", { class: "what" }, words), track, h("span", { class: "number" }, shown)];
  }));
}

export function command(words, label = "Command") {
  const button = h("button", {
    type: "button", "aria-label": `Copy: ${label}`,
    onclick: async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    },
  }, "Copy");
  const code = h("code", {}, words);
  return h("div", { class: "command" }, h("pre", {}, code), button);
}

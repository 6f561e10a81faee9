// A request to a model, typed or dropped, with its answer, its time, and the same request for a terminal and for Python.

import { ask, json, modelPath } from "/api.js";
import { shownAnswer } from "/answers.js";
import { curl, inPython } from "/commands.js";
import { card, command, fill, h } from "/dom.js";

const LONGEST = 200000; // characters of an answer that are shown
let kept = { kind: "file", text: "", json: "", tensors: "", file: null }; // what was typed stays while the page is open
let filled = ""; // the tensors that nobody has typed

export function playground(main, [name, version]) {
  const select = h("select", { "aria-label": "Model", onchange: () => { offer(); prefill(); same(); } });
  const area = h("div");
  const answer = h("div");
  const equals = h("div");
  const send = h("button", { class: "first" }, "Send");
  const tabs = h("fieldset", { class: "tabs", "aria-label": "Kind of input" }, [["file", "Image or file"], ["text", "Text"], ["json", "JSON"], ["tensors", "Tensors"]].map(([kind, title]) =>
    h("label", {}, h("input", { type: "radio", name: "kind", value: kind, checked: kept.kind === kind, onchange: () => { kept.kind = kind; input(); } }), title)));
  const whole = h("p", { class: "faint small", hidden: true }, "This model answers in pieces, and a request in tensors takes one answer.");
  const form = h("form", { onsubmit: submit }, select, h("div", { class: "field-row" }), tabs, whole, area, h("div", { class: "field-row" }, send, h("span", { class: "faint small" }, "or Ctrl+Enter")));
  const listed = h("div", {}, h("div", { class: "pair" }, card("Request", form), card("Answer", answer)), card("The same request elsewhere", equals));
  const none = h("div", { class: "card empty" }, h("h1", {}, "Nothing to try yet"), h("p", { class: "faint" }, "Register a model first."), command("tsctl register MODEL.mar", "tsctl register"));
  const place = h("div");
  let wanted = name ? JSON.stringify([name, version ?? ""]) : "";
  let address = "", names = "", running = null, picture = "", inPieces = new Set();
  fill(main, h("div", { class: "head" }, h("h1", {}, "Playground")), place);
  fill(answer, h("p", { class: "faint" }, "The answer appears here."));
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
  input();

  function input() {
    URL.revokeObjectURL(picture);
    if (kept.kind === "file") {
      const chosen = h("input", { type: "file", onchange: () => take(chosen.files[0]) });
      const words = kept.file ? `${kept.file.name}, ${Math.ceil(kept.file.size / 1024)} KiB` : "Drop an image or a file here, or choose one";
      const image = kept.file?.type.startsWith("image/") && h("img", { class: "picture", alt: "The chosen image", src: (picture = URL.createObjectURL(kept.file)) });
      fill(area, h("label", {
        class: "drop",
        ondragover: (event) => { event.preventDefault(); event.currentTarget.classList.add("over"); },
        ondragleave: (event) => event.currentTarget.classList.remove("over"),
        ondrop: (event) => { event.preventDefault(); take(event.dataTransfer.files[0]); },
      }, image, words, chosen));
    } else {
      const title = { json: "JSON", tensors: "Tensors", text: "Text" }[kept.kind];
      prefill();
      fill(area, h("textarea", { "aria-label": title, spellcheck: "false", value: kept[kept.kind], placeholder: kept.kind === "json" ? "[5.1, 3.5, 1.4, 0.2]" : "",
        oninput: (event) => { kept[kept.kind] = event.target.value; same(); } }));
    }
    same();
  }

  // Offers tensors to models that take them.
  function offer() {
    const none = inPieces.has(select.value);
    tabs.querySelector("[value=tensors]").disabled = none;
    whole.hidden = !none;
    if (!none || kept.kind !== "tensors") return;
    kept.kind = "text";
    tabs.querySelector("[value=text]").checked = true;
    input();
  }

  // Tensors begin with a request that fits what the model declares; what was typed stays.
  async function prefill() {
    if (kept.kind !== "tensors" || !select.value || kept.tensors !== filled) return;
    const [model, number] = JSON.parse(select.value);
    try {
      filled = example(await json(`tensors/${modelPath(model, number)}`));
    } catch { return; /* the answer to the request will say why */ }
    kept.tensors = filled;
    const box = area.querySelector("textarea");
    if (kept.kind === "tensors" && box) box.value = filled;
    same();
  }

  function take(file) {
    if (!file) return;
    kept.file = file;
    input();
  }

  function asked() {
    if (kept.kind === "file") return kept.file && { body: kept.file, file: kept.file.name, type: kept.file.type || "application/octet-stream" };
    const words = kept[kept.kind];
    return words.trim() && { body: words, text: words, type: kept.kind === "text" ? "text/plain" : "application/json", tensors: kept.kind === "tensors" };
  }

  function same() {
    const input = asked();
    send.disabled = !input || !select.value || running !== null;
    if (!input || !select.value) {
      fill(equals, h("p", { class: "faint" }, "Choose an input to see the request for curl and Python."));
      return;
    }
    const [model, number] = JSON.parse(select.value);
    fill(equals, command(curl(address, input.tensors ? tensorsPath(model, number) : `predictions/${modelPath(model, number)}`, input), "curl"), !input.tensors && command(inPython(address, number ? `${model}/${number}` : model, input), "Python"));
  }

  async function submit(event) {
    event.preventDefault();
    const input = asked();
    if (!input || running) return;
    const [model, number] = JSON.parse(select.value);
    running = new AbortController();
    send.disabled = true;
    fill(answer, h("p", { class: "faint", role: "status" }, "Waiting for the model …"));
    const began = performance.now();
    try {
      const reply = await ask(`${input.tensors ? "tensors" : "predictions"}/${modelPath(model, number)}`, { method: "POST", body: input.body, signal: running.signal,
        headers: { "Content-Type": input.type, "X-Tsctl-Timing": "1" } });
      await show(reply, began, input);
    } catch (error) {
      fill(answer, h("p", { role: "status" }, h("span", { class: "state bad" }, error.status ? `Status ${error.status}` : "No answer")), h("pre", {}, error.message));
    } finally {
      running = null;
      same();
    }
  }

  async function show(reply, began, input) {
    const kind = reply.headers.get("X-Tsctl-Content-Type") ?? "";
    const line = h("p", { role: "status" }, h("span", { class: "state good" }, `Status ${reply.status}`));
    const body = h("div");
    fill(answer, line, body);
    let found;
    if (kind.startsWith("image/")) {
      found = h("img", { class: "picture", alt: "The answer", src: URL.createObjectURL(new Blob([await reply.arrayBuffer()], { type: kind })) });
      fill(body, found);
    } else {
      const words = await streamed(reply, body);
      try {
        const document = JSON.parse(words);
        found = await shownAnswer(document, input.body instanceof Blob ? input.body : null);
        const raw = h("pre", {}, clipped(JSON.stringify(document, null, 2)));
        fill(body, found ? [found, h("details", {}, h("summary", { class: "small faint" }, "As JSON"), raw)] : raw);
      } catch { /* it stays the text that it is */ }
    }
    line.append(h("span", { class: "faint" }, ` · ${timing(reply.headers.get("Server-Timing"), performance.now() - began)}`));
  }

  function update(status) {
    address = status.inferenceAddress ?? "http://127.0.0.1:8080";
    const now = JSON.stringify(status.models.map((model) => [model.name, model.version, model.default, model.inPieces, worded(model)]));
    if (now !== names) {
      names = now;
      const chosen = select.value || wanted;
      fill(select, status.models.map((model) => h("option", { value: JSON.stringify([model.name, model.version]) }, [model.name, model.version, worded(model)].filter(Boolean).join(" "))));
      const first = status.models.find((model) => WORKS.includes(model.state));
      const works = first && JSON.stringify([first.name, first.version]);
      const all = [...select.options].map((option) => option.value);
      inPieces = new Set(status.models.filter((model) => model.inPieces).map((model) => JSON.stringify([model.name, model.version])));
      queueMicrotask(prefill);
      select.value = all.includes(chosen) ? chosen : all.find((each) => name && JSON.parse(each)[0] === name) ?? works ?? all[0] ?? "";
      offer();
      same();
    }
    const shown = status.models.length ? listed : none;
    if (place.firstChild !== shown) fill(place, shown);
  }

  return { update, close() { running?.abort(); URL.revokeObjectURL(picture); } };
}

const WORKS = ["ready", "unloaded"]; // the latter is loaded by its first request
const worded = (model) => (WORKS.includes(model.state) ? "" : `(${model.state})`);

const tensorsPath = (model, number) => `v2/models/${encodeURIComponent(model)}${number ? `/versions/${encodeURIComponent(number)}` : ""}/infer`;
const NUMBERS = 100; // elements of a tensor that are filled in

// A request in the words of the Open Inference Protocol, of the smallest shapes that the model's metadata allow.
function example(metadata) {
  const inputs = metadata.inputs.map(({ name, datatype, shape }) => {
    const size = shape.map((each) => (each < 0 ? 1 : each));
    const value = { BYTES: "text", BOOL: false }[datatype] ?? 0;
    return { name, datatype, shape: size, data: Array(Math.min(NUMBERS, size.reduce((all, each) => all * each, 1))).fill(value) };
  });
  return JSON.stringify({ inputs });
}

const clipped = (words) => (words.length > LONGEST ? `${words.slice(0, LONGEST)}\n… ${words.length - LONGEST} more characters` : words);

// Shows each piece when it comes; → the whole text.
async function streamed(reply, place) {
  const shown = h("pre", { tabindex: "0" });
  fill(place, shown);
  const decoder = new TextDecoder();
  let words = "";
  for (const reader = reply.body.getReader(); ;) {
    const { done, value } = await reader.read();
    words += decoder.decode(value, { stream: !done });
    shown.textContent = clipped(words);
    if (done) return words;
  }
}

// "34 ms, in a batch of 5, waited 6 ms" where the daemon tells; else the time that the browser saw.
export function timing(header, seen) {
  const parts = new Map((header ?? "").split(",").map((part) => {
    const [name, ...values] = part.trim().split(";");
    return [name, Object.fromEntries(values.map((each) => each.split("=").map((word) => word.trim().replace(/^"|"$/g, ""))))];
  }));
  const ms = (value) => `${Number(value) < 10 ? Number(value).toFixed(1) : Math.round(Number(value))} ms`;
  if (!parts.get("total")?.dur) return `${ms(seen)}, measured by this browser`;
  const batch = parts.get("batch")?.desc;
  const waited = parts.get("queue")?.dur;
  return [ms(parts.get("total").dur), batch && `in a batch of ${batch}`, waited && `waited ${ms(waited)}`].filter(Boolean).join(", ");
}

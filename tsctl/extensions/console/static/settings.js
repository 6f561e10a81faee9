// The form of a model's settings: nothing changes before its command was seen.

import { ask, modelPath } from "/api.js";
import { command, fill, h } from "/dom.js";
import { setCommand } from "/commands.js";

function shown(setting, value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" ? String(Number((value * setting.factor).toPrecision(12))) : String(value);
}

export function settingsForm(table, name, version, now) {
  const values = new Map(now.map((each) => [each.name, each.value]));
  const fields = table.filter((setting) => values.has(setting.yaml)).map((setting, index) => {
    const before = shown(setting, values.get(setting.yaml));
    const attributes = { id: `setting-${index}`, value: before, oninput: preview };
    const words = setting.boolean ? ["true", "false"] : setting.choices;
    const input = words
      ? h("select", attributes, words.map((word) => h("option", { value: word }, setting.boolean ? { true: "on", false: "off" }[word] : word)))
      : h("input", { ...attributes, type: "text", autocomplete: "off", spellcheck: "false" });
    input.value = before;
    return { setting, before, input };
  });
  const grid = h("div", { class: "settings" }, fields.map(({ setting, input }) => [
    h("label", { for: input.id }, setting.label),
    h("span", { class: "field" }, input, setting.unit && h("span", { class: "faint small" }, setting.unit)),
    h("span", { class: "help faint small" }, `Counts ${setting.changes}.`),
  ]));
  const said = h("div", { role: "status", class: "small" });
  const apply = h("button", { class: "first", disabled: true }, "Apply");
  const equals = h("div");
  const form = h("form", { onsubmit: submit }, grid, equals, h("div", { class: "field-row" }, apply, said));

  const changes = () => fields.filter(({ before, input }) => input.value.trim() !== before && input.value.trim() !== "")
    .map(({ setting, input }) => ({ setting, value: input.value.trim() }));

  function preview() {
    const asked = changes();
    apply.disabled = !asked.length;
    fill(said);
    if (asked.length) fill(equals, h("p", { class: "small faint" }, "Applying this equals:"), command(setCommand(`${name}/${version}`, asked), "tsctl set"));
    else fill(equals, h("p", { class: "small faint" }, "Change a value to see the command it equals."));
  }

  async function submit(event) {
    event.preventDefault();
    const asked = changes();
    if (!asked.length) return;
    const query = new URLSearchParams(asked.map(({ setting, value }) => [setting.rest, value]));
    apply.disabled = true;
    try {
      await ask(`models/${modelPath(name, version)}?${query}`, { method: "PATCH" });
      for (const field of fields) if (field.input.value.trim() !== "") field.before = field.input.value.trim();
      preview();
      fill(said, "Applied.");
    } catch (error) {
      fill(said, error.message);
      apply.disabled = false;
    }
  }

  preview();
  return form;
}

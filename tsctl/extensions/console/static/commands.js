// The same request for a terminal and for Python; each value quoted for its language.

export function shell(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

const python = (word) => JSON.stringify(word); // a JSON string is a Python string, but for lone surrogates

export function setCommand(model, changes) {
  const words = changes.map(({ setting, value }) => {
    if (setting.boolean) return value === "true" ? setting.flag : `--no-${setting.flag.slice(2)}`;
    return `${setting.flag} ${shell(value)}`;
  });
  return ["tsctl set", shell(model), ...words].join(" ");
}

export function curl(address, path, input) {
  const body = input.file ? `@${input.file}` : input.text;
  const flag = input.file || !body.startsWith("@") ? "--data-binary" : "--data-raw"; // a text may begin with @
  return `curl ${shell(`${address}/${path}`)} \\\n    -H ${shell(`Content-Type: ${input.type}`)} ${flag} ${shell(body)}`;
}

export function inPython(address, model, input) {
  const body = input.file ? `Path(${python(input.file)}).read_bytes()` : `${python(input.text)}.encode()`;
  return `${input.file ? "from pathlib import Path\n\n" : ""}import tsctl\n\nwith tsctl.Client(${python(address)}) as client:\n`
    + `    print(client.predict(${python(model)}, ${body},\n                         content_type=${python(input.type)}))`;
}

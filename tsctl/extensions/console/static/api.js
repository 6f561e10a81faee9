// The requests of the page; the daemon's answers come as bytes, and their type in a header of ours.

import { headers } from "/session.js";

export class Refused extends Error {
  constructor(message, status, byToken = false) {
    super(message);
    this.status = status;
    this.byToken = byToken; // the operator's token opens the page
  }
}

export async function ask(target, options = {}) {
  let answer;
  try {
    answer = await fetch(`/api/${target}`, { ...options, headers: { ...options.headers, ...headers() } });
  } catch {
    throw new Refused("The console has ended. Start `tsctl console` again.", 0);
  }
  if (answer.ok) return answer;
  const words = await answer.text();
  let message = words, byToken = false;
  try {
    ({ message = words, byToken } = JSON.parse(words));
  } catch { /* not every refusal is JSON */ }
  throw new Refused(message.trim(), answer.status, byToken);
}

export const json = async (target, options) => JSON.parse(await (await ask(target, options)).text());
export const modelPath = (name, version) =>
  encodeURIComponent(name) + (version ? `/${encodeURIComponent(version)}` : "");

// The views by the address's fragment, and the daemon's state in the header. One timer asks; a hidden page does not.

import { json } from "/api.js";
import { fill, h, text } from "/dom.js";
import { detail } from "/detail.js";
import { noteAll } from "/history.js";
import { models } from "/models.js";
import { playground } from "/playground.js";
import { again, enter, signIn } from "/session.js";
import { tune } from "/tune.js";

const EVERY = 1000; // milliseconds
const main = document.getElementById("main");
const daemon = document.getElementById("daemon");
let view = null;
let status = null;
let shown = null;
let base = null; // of the status: addresses, which do not change while a daemon runs
let older = 0; // pid of a daemon without /tsctl/live

function open() {
  const [, asked, ...named] = location.hash.split("/").map(decodeURIComponent);
  const room = asked === "playground" || asked === "tune" ? asked : "models";
  view?.close?.();
  if (room === "playground") view = playground(main, named);
  else if (room === "tune") view = tune(main, named);
  else if (asked === "models" && named.length) view = detail(main, named);
  else view = models(main);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${room}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown !== null) main.focus({ preventScroll: true });
  shown = room;
  window.scrollTo(0, 0);
  if (status) view.update(status);
}

// → the status, with the counts of each version where the daemon tells them.
async function read() {
  if (older) {
    const now = await json("status");
    if (now.pid === older) return now;
    older = 0;
  }
  try {
    const live = await json("live");
    if (base?.pid !== live.pid) base = await json("status");
    noteAll(live);
    return { ...base, ...live, live: true };
  } catch (error) {
    if (error.status !== 404) throw error;
    const now = await json("status");
    older = now.pid;
    return now;
  }
}

async function tick() {
  if (!document.hidden) {
    try {
      status = await read();
      tell("good", `tsctl ${status.version}, pid ${status.pid}`);
      view.update(status);
    } catch (error) {
      if (error.status === 401 || error.status === 403) {
        if (error.status === 401 && await again()) setTimeout(tick);
        else closed(error);
        return;
      }
      tell("bad", error.status === 502 ? "The daemon is away; trying again" : error.message);
      view.away?.(error);
    }
  }
  setTimeout(tick, EVERY);
}

// Without the secret: where the operator has a token, a form for it.
function closed(error) {
  view?.close?.();
  tell("bad", "Closed");
  if (!error.byToken) {
    fill(main, h("div", { class: "card empty" }, h("h1", {}, "This page has closed"), h("p", { class: "faint" }, error.message)));
    return;
  }
  const token = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const said = h("p", { class: "faint", role: "alert" }, error.message);
  const sign = async (event) => {
    event.preventDefault();
    const wrong = await signIn(token.value);
    if (wrong) fill(said, wrong);
    else location.reload();
  };
  fill(main, h("form", { class: "card sign-in", onsubmit: sign }, h("h1", {}, "tsctl console"), said,
    h("p", { class: "field-row" }, h("label", { for: "token" }, "Token"), token), h("button", { class: "first" }, "Sign in")));
  token.focus();
}

function tell(level, words) {
  daemon.className = `faint state ${level}`;
  text(daemon, words);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => { if (location.hash.startsWith("#enter=")) location.reload(); else open(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && status) view.update(status); });
await enter();
open();
tick();

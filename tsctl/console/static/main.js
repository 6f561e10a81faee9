// The views by the address's fragment, and the daemon's state in the header. One timer asks; a hidden page does not.

import { json } from "/api.js";
import { fill, h, text } from "/dom.js";
import { detail } from "/detail.js";
import { noteAll } from "/history.js";
import { models } from "/models.js";
import { playground } from "/playground.js";
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
  const [, room = "models", ...named] = location.hash.split("/").map(decodeURIComponent);
  view?.close?.();
  if (room === "playground") view = playground(main, named);
  else if (room === "tune") view = tune(main, named);
  else if (room === "models" && named.length) view = detail(main, named);
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
        fill(main, h("div", { class: "card empty" }, h("h1", {}, "This page has closed"), h("p", { class: "faint" }, error.message)));
        tell("bad", "Closed");
        return;
      }
      tell("bad", error.status === 502 ? "The daemon is away; trying again" : error.message);
      view.away?.(error);
    }
  }
  setTimeout(tick, EVERY);
}

function tell(level, words) {
  daemon.className = `faint state ${level}`;
  text(daemon, words);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", open);
document.addEventListener("visibilitychange", () => { if (!document.hidden && status) view.update(status); });
open();
tick();

// The secret of this origin, which every request to the console carries. A tab gets it for the token in the fragment of the address that
// the terminal opened, from another tab, or for the operator's token. It stays in sessionStorage: other ports of this address, which
// may be other users', never see it, as they would see a cookie.

const NAME = "tsctl-console";
const WAIT = 300; // milliseconds in which another tab answers
const channel = new BroadcastChannel(NAME); // reaches the tabs of this origin only
let secret = sessionStorage.getItem(NAME) ?? "";
let given = null; // called when the secret comes from another tab

function keep(words) {
  secret = words;
  sessionStorage.setItem(NAME, words);
}

channel.onmessage = ({ data }) => {
  if (data.dead && data.dead === secret) forget();
  if (data.wanted && secret) channel.postMessage({ secret });
  if (!data.secret || secret) return;
  keep(data.secret);
  if (given) given();
  else location.reload(); // this tab has closed
};

export function forget() {
  secret = "";
  sessionStorage.removeItem(NAME);
}

export const headers = () => ({ Authorization: `Bearer ${secret}` });

// Signs in with a token; → what is wrong, or nothing.
export async function signIn(token) {
  const answer = await fetch("/enter", { method: "POST", body: token });
  const { secret: words, message } = await answer.json();
  if (!answer.ok) return message;
  keep(words);
  channel.postMessage({ secret: words }); // tabs that have closed go on
  return "";
}

// Takes the token out of the address, where the terminal has put one, and asks the other tabs if there is neither it nor a secret.
export async function enter() {
  const token = location.hash.startsWith("#enter=") ? location.hash.slice("#enter=".length) : "";
  if (token) {
    history.replaceState(null, "", "/");
    if (await signIn(token).catch((error) => error.message) === "") return;
  }
  if (!secret) await fromAnotherTab();
}

// A console that was started again at the same port has another secret: no tab keeps the dead one.
export async function again() {
  const dead = secret;
  forget();
  await fromAnotherTab(dead);
  return secret !== "";
}

async function fromAnotherTab(dead = "") {
  await new Promise((resolve) => {
    given = resolve;
    channel.postMessage({ wanted: true, dead });
    setTimeout(resolve, WAIT);
  });
  given = null;
}

// Whether the server can be reached and lets this page in. One place knows, everything else asks or is told.

import { call, observe, token, Failure } from "./mcp.js";
import { fill, h } from "./dom.js";
import { dialog } from "./components/dialog.js";
import { sentence, ticked } from "./components/said.js";

/** How often it is asked whether the server is there, where nothing else asks it anything, in milliseconds. */
const BEAT = 4_000;
/** How often a lost server is looked for, in milliseconds: at first, and at most. */
const FIRST = 800;
const MOST = 5_000;

const state = { online: true, server: undefined };
const bar = () => document.getElementById("connection");
const back = new Set();
const renewed = new Set();

/** What `inspect_server` last said. */
export const server = () => state.server;
export const isOnline = () => state.online;
/** Calls `listener` when a lost server is there again. */
export const onReturn = (listener) => (back.add(listener), () => back.delete(listener));

/** Calls `listener` when the reader has given another token and the server took it: what was asked with the old one is over. */
export const onToken = (listener) => (renewed.add(listener), () => renewed.delete(listener));

/** Asks who we are to the server; asks the reader for a token where one is needed. Does not end before it is let in. */
export function enter() {
  // Several parts may be refused at the same moment; the reader is asked once.
  entering ??= letIn().finally(() => (entering = undefined));
  return entering;
}

let entering;
/** Whether a token was given that the server has not seen yet. */
let isOther = false;
async function letIn() {
  for (;;) {
    try {
      state.server = await call("inspect_server", {}, { quiet: true });
      beat ??= poll(alive, BEAT);
      if (isOther) for (const listener of [...renewed]) listener();
      isOther = false;
      return state.server;
    } catch (error) {
      if (error.kind === "token") {
        const why = token.get() ? error.message : undefined;
        token.set(null);
        await askForToken({ why });
      } else if (error.kind === "offline") await returned();
      else if (error.kind === "rate") await pause(2_000);
      else throw error;
    }
  }
}

/** Asks for a token and says whether one was given; `why` is said when one was refused. */
export async function askForToken({ why, dismissible = false } = {}) {
  const input = h("input", { type: "password", name: "token", autocomplete: "off", required: true, "aria-describedby": why ? "token-refused token-why" : "token-why", spellcheck: "false" });
  const given = await dialog({
    title: dismissible ? "Use another token" : "This server needs a token",
    body: [
      why ? h("p.problem", { id: "token-refused", role: "alert" }, ticked(sentence(why))) : null,
      // Said also after a wrong one: that is when it is needed most.
      h("p.quiet", { id: "token-why" }, "It keeps this page from being used by others. The person who runs the server has it, or makes one:"),
      h("pre", "corbie tokens create console"),
      h("label", "Token", input),
      h("p.quiet.small", "It stays in this tab, and goes when the tab is closed."),
    ],
    confirm: "Continue",
    dismissible,
    value: () => input.value.trim(),
  });
  if (given) {
    token.set(given);
    isOther = true;
  }
  return Boolean(given);
}

let beat;
async function alive() {
  try {
    await fetch("/live", { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(3_000) });
  } catch {
    throw new Failure("offline", "The server cannot be reached.");
  }
}

/** Waits until the server answers, and says so meanwhile. */
let waiting;
function returned() {
  waiting ??= (async () => {
    state.online = false;
    document.documentElement.dataset.offline = "";
    show("The server cannot be reached. Trying again…");
    for (let wait = FIRST; ; wait = Math.min(wait * 1.5, MOST)) {
      await pause(wait);
      try {
        const answer = await fetch("/live", { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(3_000) });
        if (answer.ok) break;
      } catch { /* Not there yet. */ }
    }
    state.online = true;
    delete document.documentElement.dataset.offline;
    waiting = undefined;
    show("The server is there again.", "good");
    setTimeout(() => state.online && show(), 2_500);
    for (const listener of [...back]) listener();
  })();
  return waiting;
}

function show(text, kind = "") {
  const notice = bar();
  notice.className = `notice ${kind}`;
  fill(notice, text ?? "");
  notice.hidden = !text;
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

observe(({ status, quiet }) => {
  // No status: there was no answer at all. Whoever asked says what that means to them; the bar says it to all.
  if (status === 0 && !quiet) probe();
  // A token that was taken back: whichever part noticed it, the reader is asked for another one. Why that fails, `enter`
  // tells the part that waits for it.
  if (status === 401) enter().catch(() => {});
});

async function probe() {
  await alive().catch(returned);
}

/**
 * Runs `work` now and again every `every` milliseconds while the page is shown and the server is there.
 * Gives a function that ends it. A failure is told to `failed`; a lost server only to the bar.
 */
export function poll(work, every, failed = () => {}) {
  let ended = false;
  let timer;
  const round = async () => {
    clearTimeout(timer);
    if (ended) return;
    try {
      if (!document.hidden) await work();
    } catch (error) {
      if (ended || error.kind === "cancelled") return;
      if (error.kind === "token") await enter();
      else if (error.kind === "offline") await returned();
      else failed(error instanceof Failure ? error : new Failure("failed", String(error)));
    }
    if (!ended) timer = setTimeout(round, every);
  };
  const wake = () => !document.hidden && round();
  document.addEventListener("visibilitychange", wake);
  round();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", wake);
  };
}

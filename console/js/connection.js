// Connection state: reachability of the server, authentication, reconnecting and polling.

import { call, observe, token, RequestError } from "./mcp.js";
import { fill, h } from "./dom.js";
import { dialog } from "./components/dialog.js";
import { sentence, inlineCode } from "./components/inline-code.js";

/** In milliseconds. */
const HEARTBEAT_INTERVAL = 4_000;
/** Backoff between attempts to reconnect, in milliseconds. */
const MIN_RECONNECT_DELAY = 800;
const MAX_RECONNECT_DELAY = 5_000;
/** Timeout of a liveness check, in milliseconds. */
const LIVENESS_TIMEOUT = 3_000;

const state = { online: true, server: undefined };
const reconnectListeners = new Set();
const tokenListeners = new Set();

/** The last result of `inspect_server`. */
export const server = () => state.server;
export const isOnline = () => state.online;
/** Calls `listener` after a reconnect. */
export const onReconnect = (listener) => (reconnectListeners.add(listener), () => reconnectListeners.delete(listener));

/** Calls `listener` once the server has accepted another token: results of the former one are obsolete. */
export const onTokenChange = (listener) => (tokenListeners.add(listener), () => tokenListeners.delete(listener));

/** Connects and loads the server info; asks the user for a token if required. Resolves once the server accepts the client. */
export function connect() {
  // Several requests can be rejected at the same time; the user is asked once.
  connecting ??= authenticate().finally(() => (connecting = undefined));
  return connecting;
}

let connecting;
/** Whether the user has entered a token that the server has not accepted yet. */
let isTokenPending = false;
async function authenticate() {
  for (;;) {
    try {
      state.server = await call("inspect_server", {}, { quiet: true });
      heartbeat ??= poll(checkLiveness, HEARTBEAT_INTERVAL);
      if (isTokenPending) for (const listener of [...tokenListeners]) listener();
      isTokenPending = false;
      return state.server;
    } catch (error) {
      if (error.kind === "token") {
        const rejection = token.get() ? error.message : undefined;
        token.set(null);
        await promptForToken({ rejection });
      } else if (error.kind === "offline") await waitForServer();
      else if (error.kind === "rate") await sleep(2_000);
      else throw error;
    }
  }
}

/** Asks the user for a token; returns whether one was entered. `rejection` is the reason why the last one was rejected. */
export async function promptForToken({ rejection, dismissible = false } = {}) {
  const input = h("input", { type: "password", name: "token", autocomplete: "off", required: true, "aria-describedby": rejection ? "token-refused token-why" : "token-why", spellcheck: "false" });
  const entered = await dialog({
    title: dismissible ? "Change token" : "Token required",
    body: [
      rejection ? h("p.problem", { id: "token-refused", role: "alert" }, inlineCode(sentence(rejection))) : null,
      // Also shown after a rejected token.
      h("p.quiet", { id: "token-why" }, "The server requires an API token. Its operator can create one:"),
      h("pre", "corbie tokens create console"),
      h("label", "Token", input),
      h("p.quiet.small", "Stored in this tab only, until the tab is closed."),
    ],
    confirm: "Sign in",
    dismissible,
    value: () => input.value.trim(),
  });
  if (entered) {
    token.set(entered);
    isTokenPending = true;
  }
  return Boolean(entered);
}

let heartbeat;
async function checkLiveness() {
  try {
    await fetch("/live", { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(LIVENESS_TIMEOUT) });
  } catch {
    throw new RequestError("offline", "Server unreachable.");
  }
}

/** Waits until the server responds, with a notice meanwhile. */
let waiting;
function waitForServer() {
  waiting ??= (async () => {
    state.online = false;
    document.documentElement.dataset.offline = "";
    showNotice("Server unreachable. Reconnecting…");
    for (let delay = MIN_RECONNECT_DELAY; ; delay = Math.min(delay * 1.5, MAX_RECONNECT_DELAY)) {
      await sleep(delay);
      try {
        const response = await fetch("/live", { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(LIVENESS_TIMEOUT) });
        if (response.ok) break;
      } catch { /* Still unreachable. */ }
    }
    state.online = true;
    delete document.documentElement.dataset.offline;
    waiting = undefined;
    showNotice("Reconnected.", "good");
    setTimeout(() => state.online && showNotice(), 2_500);
    for (const listener of [...reconnectListeners]) listener();
  })();
  return waiting;
}

function showNotice(text, kind = "") {
  const notice = document.getElementById("connection");
  notice.className = `notice ${kind}`;
  fill(notice, text ?? "");
  notice.hidden = !text;
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

observe(({ status, quiet, isCancelled }) => {
  // Cancelled by this page, for example because the user has left it: this says nothing about the server.
  if (isCancelled) return;
  // No status: there was no response. The notice reports a lost connection; the caller handles its own error.
  if (status === 0 && !quiet) probe();
  // A revoked token: the user is asked for another one. The component that waits for `connect` reports its errors.
  if (status === 401) connect().catch(() => {});
});

async function probe() {
  await checkLiveness().catch(waitForServer);
}

/**
 * Runs `task` now and every `interval` milliseconds while the tab is visible and the server is reachable.
 * Returns a function that stops it. Errors are passed to `onError`; a lost connection only shows the notice.
 */
export function poll(task, interval, onError = () => {}) {
  let stopped = false;
  let timer;
  const round = async () => {
    clearTimeout(timer);
    if (stopped) return;
    try {
      if (!document.hidden) await task();
    } catch (error) {
      if (stopped || error.kind === "cancelled") return;
      if (error.kind === "token") await connect();
      else if (error.kind === "offline") await waitForServer();
      else onError(error instanceof RequestError ? error : new RequestError("failed", String(error)));
    }
    if (!stopped) timer = setTimeout(round, interval);
  };
  const wake = () => !document.hidden && round();
  document.addEventListener("visibilitychange", wake);
  round();
  return () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", wake);
  };
}

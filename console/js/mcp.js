// The Model Context Protocol as this page speaks it: 2026-07-28 over POST /mcp, one request at a time, without a session.
//
// Everything the console shows comes through here, so what the server lets other clients do, it lets this page do.

const VERSION = "2026-07-28";
const PATH = "/mcp";
/** A request without an answer by then is given up; the server ends tools long before. */
const PATIENCE = 330_000;
/** How many pages of a listing are asked for: a server whose last page never comes must not be asked for ever. */
const MOST_PAGES = 100;

/** What the server calls failures that pass by themselves. */
const PASSING = new Set(["TransportError", "TimeoutError", "ShuttingDown", "RateLimited", "InternalError", "ProviderUnavailable", "NetworkError", "busy",
  "too_many_tasks", "too_many_uploads", "internal_error", "embedding_failed", "storage_busy", "storage_failed", "storage_io", "storage_in_use", "upload_storage_failed", "storage_unavailable"]);
/** And those that stay until the operator changes something. */
const REFUSING = new Set(["TrustDenied", "PermissionDenied", "ConfirmationDeclined"]);

/** Something went wrong. `kind` is one of: offline, token, refused, rate, failed, cancelled; `slow`: no answer came in time. */
export class Failure extends Error {
  constructor(kind, message, more = {}) {
    super(message);
    this.kind = kind;
    Object.assign(this, more);
  }
}

/**
 * Whether another try may help: the server was away, busy, too slow, or failed itself, or another token was given since. A
 * refusal stays one, and so does a wrong argument. What is no failure of the server is one of the page, such as a part of it that did not load.
 */
export function mayPass(error) {
  if (!(error instanceof Failure)) return true;
  const { kind, status = 0, data, structured } = error;
  return ["offline", "rate", "token"].includes(kind) || error.slow === true || status >= 500 || PASSING.has(data?.error_type ?? structured?.error?.type ?? structured?.error);
}

/** Who wants to hear of every exchange: (exchange) => void, with method, request, status, response, milliseconds. */
const listeners = new Set();
export const observe = (listener) => (listeners.add(listener), () => listeners.delete(listener));

let next = 1;
const TOKEN = "corbie.token";

/** The token lives in this tab alone and goes with it. It is sent as a header and never written into an address. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (value) => (value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN)),
};

export function bearer(headers = {}) {
  const held = token.get();
  return held ? { ...headers, Authorization: `Bearer ${held}` } : headers;
}

/** Sends one request and gives its result. Options: signal, onprogress, quiet (not shown to observers). */
export async function request(method, params = {}, { signal, onprogress, quiet } = {}) {
  const id = next++;
  const meta = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "corbie-console", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
    ...(onprogress ? { progressToken: `p${id}` } : {}),
  };
  const body = { jsonrpc: "2.0", id, method, params: { ...params, _meta: { ...params._meta, ...meta } } };
  const headers = bearer({
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": method,
  });
  const named = params.name ?? params.uri ?? params.taskId;
  if (named !== undefined) headers["Mcp-Name"] = headerValue(named);
  const started = performance.now();
  const give = signal ? AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]) : AbortSignal.timeout(PATIENCE);
  let status = 0;
  let message;
  try {
    const response = await fetch(PATH, { method: "POST", headers, body: JSON.stringify(body), signal: give, credentials: "omit", cache: "no-store" });
    status = response.status;
    message = await read(response, id, onprogress);
  } catch (error) {
    if (error.name === "AbortError") throw new Failure("cancelled", "It was cancelled.");
    if (error.name === "TimeoutError") throw new Failure("failed", "The server did not answer in time. Try again, or look at its log.", { slow: true });
    if (error instanceof Failure) throw error;
    throw new Failure("offline", "The server cannot be reached. Is `corbie serve` still running?");
  } finally {
    const exchange = { method, request: body, status, response: message, milliseconds: performance.now() - started, quiet };
    for (const listener of listeners) listener(exchange);
  }
  if (message?.error) throw failure(status, message.error);
  if (!message || message.result === undefined) throw new Failure("failed", `The server answered with status ${status} and nothing that could be read.`, { status });
  return message.result;
}

/** Calls a tool. Gives its structured content (or its text), or throws what the tool says went wrong. */
export async function call(name, args = {}, options) {
  const result = await request("tools/call", { name, arguments: args }, options);
  const text = (result.content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n");
  let structured = result.structuredContent;
  if (structured === undefined) {
    try { structured = JSON.parse(text); } catch { structured = undefined; }
  }
  if (result.isError || structured?.success === false) throw new Failure("failed", sentence(structured, text), { tool: name, structured });
  return structured ?? text;
}

/** What a resource says, read as JSON. */
export async function resource(uri, options) {
  const result = await request("resources/read", { uri }, options);
  return JSON.parse(result.contents?.[0]?.text ?? "null");
}

/** Every item of a listing, page after page: all("tools/list", "tools"). */
export async function all(method, member) {
  const items = [];
  let cursor;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page = await request(method, cursor ? { cursor } : {});
    items.push(...(page[member] ?? []));
    cursor = page.nextCursor;
    if (!cursor || items.length >= 10_000) break;
  }
  return items;
}

/** Sends a file; gives its path for `knowledge-add`, and `at`: when the server has answered, by its clock. `onprogress` gets shares from 0 to 1. */
export function upload(file, name = file.name, { onprogress, signal } = {}) {
  return new Promise((resolve, reject) => {
    // No event comes for what was cancelled before.
    if (signal?.aborted) return reject(new Failure("cancelled", "It was cancelled."));
    const sending = new XMLHttpRequest();
    sending.open("POST", `/files?filename=${encodeURIComponent(name)}`);
    for (const [key, value] of Object.entries(bearer({ "Content-Type": "application/octet-stream" }))) sending.setRequestHeader(key, value);
    sending.upload.onprogress = (event) => event.lengthComputable && onprogress?.(event.loaded / event.total);
    sending.onerror = () => reject(new Failure("offline", "The server cannot be reached. Is `corbie serve` still running?"));
    sending.onabort = () => reject(new Failure("cancelled", "It was cancelled."));
    sending.onload = () => {
      let said;
      try { said = JSON.parse(sending.responseText); } catch { said = undefined; }
      if (sending.status >= 200 && sending.status < 300 && said) resolve({ ...said, at: Date.parse(sending.getResponseHeader("Date")) || Date.now() });
      else reject(failure(sending.status, typeof said?.error === "object" ? said.error : said ?? {}));
    };
    signal?.addEventListener("abort", () => sending.abort());
    sending.send(file);
  });
}

async function read(response, id, onprogress) {
  const kind = response.headers.get("content-type") ?? "";
  if (kind.startsWith("text/event-stream")) return readEvents(response, id, onprogress);
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    if (response.ok) return undefined;
    throw new Failure(kindOf(response.status), `The server answered with status ${response.status}.`, { status: response.status });
  }
}

/** Reads events until the answer to this request; what comes before it is progress. */
async function readEvents(response, id, onprogress) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return undefined;
    text += value.replaceAll("\r\n", "\n");
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const data = text.slice(0, end).split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      text = text.slice(end + 2);
      if (!data) continue;
      const message = JSON.parse(data);
      if (message.id === id) {
        reader.cancel();
        return message;
      }
      if (message.method === "notifications/progress") onprogress?.(message.params);
    }
  }
}

/** A refusal or an error of the protocol, in a sentence. */
function failure(status, error) {
  const said = typeof error === "string" ? error : error.message ?? sentence(error, "");
  const kind = REFUSING.has(error.data?.error_type) ? "refused" : kindOf(status);
  if (kind === "token") return new Failure(kind, capital(said || "This server needs a token."), { status });
  if (kind === "rate") return new Failure(kind, `${capital(said || "Too many requests.")} Wait a moment and try again.`, { status });
  return new Failure(kind, capital(said || `The server answered with status ${status}.`), { status, code: error.code, data: error.data });
}

function kindOf(status) {
  if (status === 401) return "token";
  if (status === 403) return "refused";
  if (status === 429) return "rate";
  return "failed";
}

/** What a tool says of its failure: the knowledge tools say `error.message`, others `message` or plain text. */
function sentence(structured, text) {
  const error = structured?.error;
  const said = error?.message ?? (typeof error === "string" ? structured.message ?? error : structured?.message) ?? text;
  return capital(said || "It failed, and the server did not say why.");
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Header values are plain ASCII; anything else goes as base64, as the protocol has it. */
function headerValue(value) {
  const text = String(value);
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

// MCP client of the console: protocol version 2026-07-28 over POST /mcp, without a session.
//
// All data of the console comes through it, so the console has the same permissions as any other MCP client.

const PROTOCOL_VERSION = "2026-07-28";
const ENDPOINT = "/mcp";
/** In milliseconds. Longer than the tool timeout of the server. */
const REQUEST_TIMEOUT = 330_000;
/** Maximum number of pages and items of a paginated list; bounds the requests to a server with endless cursors. */
const MAX_PAGES = 100;
const MAX_ITEMS = 10_000;

/** Error types of transient errors. */
const TRANSIENT_ERRORS = new Set(["TransportError", "TimeoutError", "ShuttingDown", "RateLimited", "InternalError", "ProviderUnavailable", "NetworkError", "busy",
  "too_many_tasks", "too_many_uploads", "internal_error", "embedding_failed", "storage_busy", "storage_failed", "storage_io", "storage_in_use", "upload_storage_failed", "storage_unavailable"]);
/** Error types of denied permissions. */
const PERMISSION_ERRORS = new Set(["TrustDenied", "PermissionDenied", "ConfirmationDeclined"]);

/** A failed request. `kind` is one of: offline, token, refused, rate, failed, cancelled; `timedOut`: no response in time. */
export class RequestError extends Error {
  constructor(kind, message, more = {}) {
    super(message);
    this.kind = kind;
    Object.assign(this, more);
  }
}

/**
 * Whether a retry can succeed: the server was unreachable, busy, too slow or had an internal error, or the token has changed
 * since. Denied permissions and invalid arguments are permanent. Other errors are errors of the page, such as a module that
 * did not load, and can be retried.
 */
export function isRetryable(error) {
  if (!(error instanceof RequestError)) return true;
  const { kind, status = 0, data, structured } = error;
  return ["offline", "rate", "token"].includes(kind) || error.timedOut === true || status >= 500 || TRANSIENT_ERRORS.has(data?.error_type ?? structured?.error?.type ?? structured?.error);
}

/** Observers of every exchange: (exchange) => void, with method, request, status, response, milliseconds, isCancelled. */
const listeners = new Set();
export const observe = (listener) => (listeners.add(listener), () => listeners.delete(listener));

let nextId = 1;
const TOKEN_KEY = "corbie.token";

/** The API token, kept in the session storage of the tab. It is sent as a header and is never part of a URL. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY),
  set: (value) => (value ? sessionStorage.setItem(TOKEN_KEY, value) : sessionStorage.removeItem(TOKEN_KEY)),
};

export function withBearerToken(headers = {}) {
  const value = token.get();
  return value ? { ...headers, Authorization: `Bearer ${value}` } : headers;
}

/** Sends a request and returns its result. Options: signal, onprogress, quiet (a background request, marked for observers). */
export async function request(method, params = {}, { signal, onprogress, quiet } = {}) {
  const id = nextId++;
  const meta = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "corbie-console", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
    // The overview shows the traffic of other clients, and not its own polling.
    "corbie/excludeFromHistory": true,
    ...(onprogress ? { progressToken: `p${id}` } : {}),
  };
  const body = { jsonrpc: "2.0", id, method, params: { ...params, _meta: { ...params._meta, ...meta } } };
  const headers = withBearerToken({
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": PROTOCOL_VERSION,
    "Mcp-Method": method,
  });
  const name = params.name ?? params.uri ?? params.taskId;
  if (name !== undefined) headers["Mcp-Name"] = encodeHeaderValue(name);
  const started = performance.now();
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT);
  let status = 0;
  let message;
  let isCancelled = false;
  try {
    const response = await fetch(ENDPOINT, { method: "POST", headers, body: JSON.stringify(body), signal: signal ? AbortSignal.any([signal, timeout]) : timeout, credentials: "omit", cache: "no-store" });
    status = response.status;
    message = await readMessage(response, id, onprogress);
  } catch (error) {
    if (error.name === "AbortError") {
      isCancelled = true;
      throw new RequestError("cancelled", "Cancelled.");
    }
    if (error.name === "TimeoutError") throw new RequestError("failed", "The request timed out. Try again, or check the server log.", { timedOut: true });
    if (error instanceof RequestError) throw error;
    throw new RequestError("offline", "Server unreachable. Is `corbie serve` running?");
  } finally {
    const exchange = { method, request: body, status, response: message, milliseconds: performance.now() - started, quiet, isCancelled };
    for (const listener of listeners) listener(exchange);
  }
  if (message?.error) throw toRequestError(status, message.error);
  if (!message || message.result === undefined) throw new RequestError("failed", `Invalid response from the server (HTTP ${status}).`, { status });
  return message.result;
}

/** Calls a tool. Returns its structured content (or its text), or throws the error of the tool. */
export async function call(name, args = {}, options) {
  const result = await request("tools/call", { name, arguments: args }, options);
  const text = (result.content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n");
  let structured = result.structuredContent;
  if (structured === undefined) {
    try { structured = JSON.parse(text); } catch { structured = undefined; }
  }
  if (result.isError || structured?.success === false) throw new RequestError("failed", toolErrorMessage(structured, text), { tool: name, structured });
  return structured ?? text;
}

/** Reads a JSON resource. */
export async function readResource(uri, options) {
  const result = await request("resources/read", { uri }, options);
  return JSON.parse(result.contents?.[0]?.text ?? "null");
}

/** All items of a paginated list: listAll("tools/list", "tools"). */
export async function listAll(method, member) {
  const items = [];
  let cursor;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await request(method, cursor ? { cursor } : {});
    items.push(...(page[member] ?? []));
    cursor = page.nextCursor;
    if (!cursor || items.length >= MAX_ITEMS) break;
  }
  return items;
}

/** Uploads a file; returns its path for `knowledge-add`, and `at`: the time of the response, by the clock of the server. `onprogress` gets shares from 0 to 1. */
export function upload(file, name = file.name, { onprogress, signal } = {}) {
  return new Promise((resolve, reject) => {
    // A signal that was aborted before fires no event.
    if (signal?.aborted) return reject(new RequestError("cancelled", "Cancelled."));
    const xhr = new XMLHttpRequest();
    xhr.open("POST", `/files?filename=${encodeURIComponent(name)}`);
    for (const [key, value] of Object.entries(withBearerToken({ "Content-Type": "application/octet-stream" }))) xhr.setRequestHeader(key, value);
    xhr.upload.onprogress = (event) => event.lengthComputable && onprogress?.(event.loaded / event.total);
    xhr.onerror = () => reject(new RequestError("offline", "Server unreachable. Is `corbie serve` running?"));
    xhr.onabort = () => reject(new RequestError("cancelled", "Cancelled."));
    xhr.onload = () => {
      let reply;
      try { reply = JSON.parse(xhr.responseText); } catch { reply = undefined; }
      if (xhr.status >= 200 && xhr.status < 300 && reply) resolve({ ...reply, at: Date.parse(xhr.getResponseHeader("Date")) || Date.now() });
      else reject(toRequestError(xhr.status, typeof reply?.error === "object" ? reply.error : reply ?? {}));
    };
    signal?.addEventListener("abort", () => xhr.abort());
    xhr.send(file);
  });
}

async function readMessage(response, id, onprogress) {
  const contentType = response.headers.get("content-type") ?? "";
  if (contentType.startsWith("text/event-stream")) return readEvents(response, id, onprogress);
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    if (response.ok) return undefined;
    throw new RequestError(errorKind(response.status), `The server responded with HTTP ${response.status}.`, { status: response.status });
  }
}

/** Reads server-sent events up to the response to this request; events before it are progress. */
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

/** Converts a rejection or a protocol error. */
function toRequestError(status, error) {
  const message = typeof error === "string" ? error : error.message ?? toolErrorMessage(error, "");
  const kind = PERMISSION_ERRORS.has(error.data?.error_type) ? "refused" : errorKind(status);
  if (kind === "token") return new RequestError(kind, capitalize(message || "Token required."), { status });
  if (kind === "rate") return new RequestError(kind, `${capitalize(message || "Too many requests.")} Try again in a few seconds.`, { status });
  return new RequestError(kind, capitalize(message || `The server responded with HTTP ${status}.`), { status, code: error.code, data: error.data });
}

function errorKind(status) {
  if (status === 401) return "token";
  if (status === 403) return "refused";
  if (status === 429) return "rate";
  return "failed";
}

/** The error message of a tool: the knowledge tools have `error.message`, others `message` or plain text. */
function toolErrorMessage(structured, text) {
  const error = structured?.error;
  const message = error?.message ?? (typeof error === "string" ? structured.message ?? error : structured?.message) ?? text;
  return capitalize(message || "Unknown error; see the server log.");
}

const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Encodes values that are not plain ASCII as base64, in the format of the protocol. */
function encodeHeaderValue(value) {
  const text = String(value);
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

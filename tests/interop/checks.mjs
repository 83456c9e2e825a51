// Shared by the TypeScript interop tests: arguments, one printed line per check, and the conversation itself, which is
// the same for both generations of the SDK.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual, parseArgs } from "node:util";

const SECONDS_PER_CONNECTION = 60;

let failed = 0;

export function check(holds, what, otherwise = "") {
  if (!holds) failed += 1;
  console.log(`${holds ? "ok  " : "FAIL"}  ${what}${holds || !otherwise ? "" : `: ${otherwise}`}`);
}

// Ends the process even when a transport still holds a socket open.
export function finish() {
  process.exit(failed ? 1 : 0);
}

// --url URL --calls FILE COMMAND [ARG...]
export function given() {
  const { values, positionals } = parseArgs({
    options: { url: { type: "string" }, calls: { type: "string" } },
    allowPositionals: true,
  });
  if (!values.url || !values.calls || positionals.length === 0) {
    console.error("usage: WITNESS --url URL --calls FILE -- COMMAND [ARG...]");
    process.exit(2);
  }
  const [command, ...args] = positionals;
  return { url: new URL(values.url), calls: JSON.parse(readFileSync(values.calls, "utf8")), command, args };
}

// Opens `client` on `transport`, runs the whole conversation and closes; a failure never stops the next connection.
export async function witness(label, client, transport, version, calls) {
  const noise = [];
  let closing = false;
  client.onerror = (error) => {
    if (!closing) noise.push(String(error));
  };
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${SECONDS_PER_CONNECTION} s`)), SECONDS_PER_CONNECTION * 1000);
  });
  try {
    await Promise.race([converse(label, client, transport, version, calls), late]);
  } catch (error) {
    check(false, `${label}: the conversation ends without an exception`, error?.stack ?? String(error));
  } finally {
    clearTimeout(timer);
    closing = true;
    await client.close().catch(() => {});
  }
  check(noise.length === 0, `${label}: nothing but protocol messages arrives`, noise.join("; "));
}

async function converse(label, client, transport, version, calls) {
  await client.connect(transport);
  const spoken = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
  // The first generation does not expose the version on stdio.
  if (spoken !== undefined) check(spoken === version, `${label}: speaks ${version}`, `got ${spoken}`);
  check(Boolean(client.getServerVersion()?.name), `${label}: the server says its name`);
  if (version < "2026") {
    await client.ping();
    check(true, `${label}: ping`);
  }
  await callTools(label, client, calls);
  await callUnknownTool(label, client);
  const capabilities = client.getServerCapabilities() ?? {};
  if (capabilities.resources) await readFirstResource(label, client);
  if (capabilities.prompts) {
    const { prompts } = await client.listPrompts();
    check(true, `${label}: lists ${prompts.length} prompts`);
  }
  if (transport.sessionId) {
    await transport.terminateSession();
    check(true, `${label}: ends its session`);
  }
}

async function callTools(label, client, calls) {
  const { tools } = await client.listTools();
  const missing = calls.filter((call) => !tools.some((tool) => tool.name === call.tool)).map((call) => call.tool);
  check(missing.length === 0, `${label}: lists ${tools.length} tools`, `missing ${missing}`);
  for (const call of calls) {
    const tool = tools.find(({ name }) => name === call.tool);
    const result = await client.callTool({ name: call.tool, arguments: call.arguments });
    const problem = problemWith(call, result, call.structured || tool?.outputSchema !== undefined);
    check(problem === undefined, `${label}: calls ${call.tool}`, problem);
  }
}

async function callUnknownTool(label, client) {
  const refused = await client.callTool({ name: "no_such_tool_anywhere", arguments: {} }).then(
    (result) => result.isError === true,
    () => true,
  );
  check(refused, `${label}: an unknown tool is an error`);
}

async function readFirstResource(label, client) {
  const { resources } = await client.listResources();
  check(true, `${label}: lists ${resources.length} resources`);
  if (resources.length > 0) {
    const { contents } = await client.readResource({ uri: resources[0].uri });
    check(contents.length > 0, `${label}: reads ${resources[0].uri}`, "no contents");
  }
}

// Clients show either `content` or `structuredContent`, so both must carry the same object.
function problemWith(call, result, structured) {
  if (result.isError) return `the tool reports an error: ${JSON.stringify(result.content).slice(0, 300)}`;
  const text = result.content?.[0]?.text;
  if (text === undefined) return `the first content item is not text: ${JSON.stringify(result.content)?.slice(0, 300)}`;
  if (call.contains !== undefined && !text.includes(call.contains)) {
    return `the text lacks \`${call.contains}\`: ${text.slice(0, 300)}`;
  }
  if (result.structuredContent === undefined) return structured ? "structuredContent is missing" : undefined;
  let parsed;
  try {
    parsed = JSON.parse(text);
  } catch {
    return `structuredContent is given, but the text is not JSON: ${text.slice(0, 300)}`;
  }
  return isDeepStrictEqual(parsed, result.structuredContent)
    ? undefined
    : `text and structuredContent differ: ${text.slice(0, 300)}`;
}

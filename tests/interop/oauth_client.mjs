// The official TypeScript SDK, both generations, obtains a token for corbie on its own and calls a tool with it.
//
//   oauth_client.mjs URL

import * as second from "@modelcontextprotocol/client";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { check, finish } from "./checks.mjs";

const url = new URL(process.argv[2]);
// No server listens there: the test reads the redirect location instead.
const callback = "http://127.0.0.1:1/callback";
const mostRedirects = 20;
const generations = { "typescript-v1": { Client, StreamableHTTPClientTransport, UnauthorizedError }, "typescript-v2": second };

// Follows redirects until one leads back to the client.
async function browse(from) {
  const cookies = new Map();
  let at = from;
  for (let turn = 0; turn < mostRedirects; turn += 1) {
    if (at.href.startsWith(callback)) return at.searchParams;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(at, { redirect: "manual", headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]*)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    at = new URL(answer.headers.get("location"), at);
  }
  throw new Error("the provider does not send the browser back");
}

// Stores the SDK's state and simulates the browser.
function provider() {
  const known = {};
  return {
    redirectUrl: callback,
    clientMetadata: { client_name: "witness", redirect_uris: [callback], token_endpoint_auth_method: "none" },
    clientInformation: () => known.client,
    saveClientInformation: (client) => (known.client = client),
    tokens: () => known.tokens,
    saveTokens: (tokens) => (known.tokens = tokens),
    redirectToAuthorization: async (to) => (known.answer = await browse(to)),
    saveCodeVerifier: (verifier) => (known.verifier = verifier),
    codeVerifier: () => known.verifier,
    known,
  };
}

async function converse(label, sdk) {
  const authProvider = provider();
  const open = () => new sdk.StreamableHTTPClientTransport(url, { authProvider });
  const client = () => new sdk.Client({ name: "witness", version: "1.0.0" });
  const first = open();
  const refused = await client().connect(first).then(() => "nothing is thrown", (error) => error);
  check(refused instanceof sdk.UnauthorizedError, `${label}: the client is refused without a token`, String(refused));
  await first.finishAuth(authProvider.known.answer.get("code"), authProvider.known.answer.get("iss"));
  const known = client();
  await known.connect(open());
  const told = await known.callTool({ name: "inspect_server", arguments: {} });
  const trust = told.structuredContent?.trust;
  check(trust === "VERIFIED", `${label}: its scopes make the caller verified`, String(trust));
  await known.close();
}

for (const [label, sdk] of Object.entries(generations)) {
  try {
    await converse(`oauth flow ${label}`, sdk);
  } catch (error) {
    check(false, `oauth flow ${label}: the conversation ends without an exception`, error?.stack ?? String(error));
  }
}
finish();

// The second generation of the official TypeScript SDK, over stdio and HTTP, with every way to open a connection.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { finish, given, witness } from "./checks.mjs";

// How the client connects, and the version both sides must agree on.
const OPENINGS = [
  ["legacy", "legacy", "2025-11-25"],
  ["auto", "auto", "2026-07-28"],
  ["pinned", { pin: "2026-07-28" }, "2026-07-28"],
];

const { url, calls, command, args } = given();
const transports = {
  stdio: () => new StdioClientTransport({ command, args }),
  http: () => new StreamableHTTPClientTransport(url),
};

for (const [name, transport] of Object.entries(transports)) {
  for (const [opening, mode, version] of OPENINGS) {
    const client = new Client({ name: "witness", version: "1.0.0" }, { versionNegotiation: { mode } });
    await witness(`typescript-v2 ${name} ${opening}`, client, transport(), version, calls);
  }
}
finish();

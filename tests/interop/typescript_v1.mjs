// The first generation of the official TypeScript SDK: handshake versions only; most clients use it today.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { finish, given, witness } from "./checks.mjs";

const { url, calls, command, args } = given();
const client = () => new Client({ name: "witness", version: "1.0.0" });

await witness("typescript-v1 stdio", client(), new StdioClientTransport({ command, args }), "2025-11-25", calls);
await witness("typescript-v1 http", client(), new StreamableHTTPClientTransport(url), "2025-11-25", calls);
finish();

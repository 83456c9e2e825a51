// The first generation of the official TypeScript SDK: stdio, or stateless HTTP with JSON replies on `--port N`.

import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

function makeServer() {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  const echo = { description: "Say the text back.", inputSchema: { text: z.string().describe("What to say") } };
  server.registerTool("echo", echo, ({ text }) => ({ content: [{ type: "text", text }] }));
  const tenKb = { description: "Ten thousand bytes of text." };
  server.registerTool("ten_kb", tenKb, () => ({ content: [{ type: "text", text: "x".repeat(10_000) }] }));
  return server;
}

const at = process.argv.indexOf("--port");
if (at < 0) {
  await makeServer().connect(new StdioServerTransport());
} else {
  // A stateless transport serves one request; the SDK refuses to use it again.
  const answer = async (request, response) => {
    const server = makeServer();
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    response.on("close", () => server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  };
  createServer(answer).listen(Number(process.argv[at + 1]), "127.0.0.1");
}

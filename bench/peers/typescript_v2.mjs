// The second generation of the official TypeScript SDK: stdio, or stateless HTTP with JSON replies on `--port N`; both
// eras.

import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

function makeServer() {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  const inputSchema = z.object({ text: z.string().describe("What to say") });
  const echo = { description: "Say the text back.", inputSchema };
  server.registerTool("echo", echo, ({ text }) => ({ content: [{ type: "text", text }] }));
  const tenKb = { description: "Ten thousand bytes of text." };
  server.registerTool("ten_kb", tenKb, () => ({ content: [{ type: "text", text: "x".repeat(10_000) }] }));
  return server;
}

const at = process.argv.indexOf("--port");
if (at < 0) {
  serveStdio(makeServer);
} else {
  const modern = toNodeHandler(createMcpHandler(makeServer, { responseMode: "json" }));
  // The handler's own legacy leg answers with event streams; a transport of one's own can answer with JSON.
  const legacy = async (request, response) => {
    const server = makeServer();
    const options = { sessionIdGenerator: undefined, enableJsonResponse: true };
    const transport = new NodeStreamableHTTPServerTransport(options);
    response.on("close", () => server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  };
  const answer = (request, response) =>
    (request.headers["mcp-protocol-version"] === "2026-07-28" ? modern : legacy)(request, response);
  createServer(answer).listen(Number(process.argv[at + 1]), "127.0.0.1");
}

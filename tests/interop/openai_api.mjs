// OpenAI's official Node SDK as a client of corbie, with providers of three wire formats behind it.

import { isDeepStrictEqual, parseArgs } from "node:util";
import OpenAI from "openai";
import { check, finish } from "./checks.mjs";

const SECONDS = 30;
const FORMATS = ["openai", "anthropic", "google"];
const SCHEMA = {
  type: "object",
  properties: { place: { type: "string" } },
  required: ["place"],
  additionalProperties: false,
};
const TOOLS = [{ type: "function", function: { name: "weather", parameters: SCHEMA } }];
const SHAPE = { type: "json_schema", json_schema: { name: "place", strict: true, schema: SCHEMA } };
const CALL = 'call weather {"place": "Lima"}';
const PICTURE = "data:image/png;base64,iVBORw0KGgo=";
const USER = [{ role: "user", content: "hello to you" }];

const { values } = parseArgs({ options: { url: { type: "string" }, token: { type: "string" } } });
// Default retries: corbie itself must signal to the SDK that they are useless.
const client = new OpenAI({ baseURL: `${values.url}/v1`, apiKey: values.token, timeout: SECONDS * 1000 });

for (const provider of FORMATS) await part(`openai-node ${provider}`, (label) => ask(label, provider));
await part("openai-node", askForTheRest);
finish();

async function part(label, talk) {
  try {
    await talk(label);
  } catch (error) {
    check(false, `${label}: the conversation ends without an exception`, error?.stack ?? String(error));
  }
}

async function ask(label, provider) {
  const model = `${provider}/echo-small`;
  const create = (more = {}) => client.chat.completions.create({ model, messages: USER, ...more });

  const { data: answer, response } = await create().withResponse();
  const [choice] = answer.choices;
  same(`${label}: chat`, [choice.message.content, choice.finish_reason], ["echo: hello to you", "stop"]);
  same(`${label}: usage`, [answer.usage.prompt_tokens, answer.usage.completion_tokens], [3, 4]);
  same(`${label}: headers`, response.headers.get("x-corbie-provider"), provider);

  let text = "";
  for await (const chunk of await create({ stream: true })) text += chunk.choices[0].delta.content ?? "";
  same(`${label}: stream`, text, "echo: hello to you");
  const totals = [];
  for await (const chunk of await create({ stream: true, stream_options: { include_usage: true } })) {
    if (chunk.usage) totals.push(chunk.usage.total_tokens);
  }
  same(`${label}: stream usage`, totals, [7]);

  const turns = [{ role: "user", content: CALL }];
  const { message } = (await create({ messages: turns, tools: TOOLS })).choices[0];
  same(`${label}: tool call`, called(message), ["weather", '{"place":"Lima"}']);
  const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "rain" };
  const told = await create({ messages: [...turns, message, result], tools: TOOLS });
  same(`${label}: tool result`, told.choices[0].message.content, "echo: rain");
  const streamed = await client.chat.completions.stream({ model, messages: turns, tools: TOOLS }).finalChatCompletion();
  same(`${label}: streamed tool call`, called(streamed.choices[0].message), ["weather", '{"place":"Lima"}']);

  const parts = [{ type: "text", text: "look" }, { type: "image_url", image_url: { url: PICTURE } }];
  const seen = (await create({ messages: [{ role: "user", content: parts }] })).choices[0].message.content;
  check(seen.includes("[image]"), `${label}: vision`, seen);
  const shaped = await client.chat.completions.parse({ model, messages: USER, response_format: SHAPE });
  same(`${label}: structured output`, JSON.parse(shaped.choices[0].message.content), { place: "" });

  if (provider !== "openai") await handBack(label, provider);

  await fails(label, OpenAI.NotFoundError, () => create({ model: `${provider}/status-404` }));
  await fails(label, OpenAI.BadRequestError, () => create({ model: `${provider}/status-400` }));
  const limited = await fails(label, OpenAI.RateLimitError, () => create({ model: `${provider}/status-429-after-9` }));
  same(`${label}: retry-after`, limited?.headers.get("retry-after"), "9");
  await fails(label, OpenAI.InternalServerError, () => create({ model: `${provider}/status-503` }));
  const refused = await fails(label, OpenAI.InternalServerError, () => create({ model: `bad-${provider}/echo-small` }));
  same(`${label}: a refused key of ours is no refused key of theirs`, refused?.status, 502);
  let heard = "";
  await fails(label, OpenAI.APIError, async () => {
    for await (const chunk of await create({ model: `${provider}/error-mid`, stream: true })) {
      heard += chunk.choices[0]?.delta.content ?? "";
    }
  });
  check(heard !== "", `${label}: what came before the error is heard`);

  const dripping = await create({ model: `${provider}/drip-500`, stream: true });
  const started = Date.now();
  for await (const chunk of dripping) {
    if (chunk.choices.length > 0) dripping.controller.abort();
  }
  check(Date.now() - started < 4000, `${label}: a stream is left`, `${Date.now() - started} ms`);
}

// Thought signatures for the provider return with the messages.
async function handBack(label, provider) {
  const settings = { model: `${provider}/marks`, tools: TOOLS, reasoning_effort: "low" };
  const ways = {
    whole: (messages) => client.chat.completions.create({ messages, ...settings }),
    streamed: (messages) => client.chat.completions.stream({ messages, ...settings }).finalChatCompletion(),
  };
  for (const [how, create] of Object.entries(ways)) {
    const turns = [{ role: "user", content: CALL }];
    const { message } = (await create(turns)).choices[0];
    turns.push(message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: "rain" });
    const second = (await create(turns)).choices[0].message;
    same(`${label}: ${how}: the signature of a call comes back`, second.content, "1 signatures, 0 cache marks");
    turns.push(second, { role: "user", content: "and now?" });
    const third = (await create(turns)).choices[0].message;
    same(`${label}: ${how}: the signature of a text comes back`, third.content, "2 signatures, 0 cache marks");
  }
}

async function askForTheRest(label) {
  const { data, response } = await client.chat.completions.create({ model: "auto", messages: USER }).withResponse();
  same(`${label}: auto`, data.choices[0].message.content, "echo: hello to you");
  check(Boolean(response.headers.get("x-corbie-category")), `${label}: auto is classified`);

  const input = ["a cat", "the price of copper"];
  // By default, the SDK requests base64 and decodes it.
  const decoded = (await client.embeddings.create({ model: "auto", input })).data;
  const listed = (await client.embeddings.create({ model: "auto", input, encoding_format: "float" })).data;
  same(`${label}: embeddings`, decoded.map(({ embedding }) => embedding.length), [384, 384]);
  const near = (one, other) => one.every((number, index) => Math.abs(number - other[index]) < 1e-6);
  const alike = decoded.every(({ embedding }, index) => near(Array.from(embedding), listed[index].embedding));
  check(alike, `${label}: embeddings as numbers and as base64 are the same`);

  for (const provider of ["openai", "google"]) {
    const model = `${provider}/vectors`;
    const { data: made, response: head } = await client.embeddings.create({ model, input }).withResponse();
    same(`${label}: embeddings by ${provider}`, head.headers.get("x-corbie-provider"), provider);
    const floats = await client.embeddings.create({ model, input, encoding_format: "float" });
    const vectors = ({ data }) => data.map(({ embedding }) => Array.from(embedding));
    same(`${label}: vectors of ${provider}`, vectors(made), vectors(floats));
    same(`${label}: usage of ${provider}`, made.usage, { prompt_tokens: 6, total_tokens: 6 });
  }
  const nobody = () => client.embeddings.create({ model: "anthropic/vectors", input });
  same(`${label}: code`, (await fails(label, OpenAI.NotFoundError, nobody))?.code, "model_not_found");

  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  check(["auto", "echo-small", "echo-large"].every((name) => names.includes(name)), `${label}: models`, String(names));
  same(`${label}: model`, (await client.models.retrieve("auto")).id, "auto");

  const unknown = () => client.chat.completions.create({ model: "no-such-model", messages: USER });
  const lost = await fails(label, OpenAI.NotFoundError, unknown);
  same(`${label}: code`, [lost?.code, lost?.param, lost?.type], ["model_not_found", "model", "invalid_request_error"]);
  const empty = () => client.chat.completions.create({ model: "auto", messages: [] });
  same(`${label}: param`, (await fails(label, OpenAI.BadRequestError, empty))?.param, "messages");
  const wrong = client.withOptions({ apiKey: "wrong" });
  await fails(label, OpenAI.AuthenticationError, () => wrong.models.list());
  const locked = () => wrong.chat.completions.create({ model: "auto", messages: USER });
  await fails(label, OpenAI.AuthenticationError, locked);
}

function called(message) {
  const { name, arguments: given } = message.tool_calls[0].function;
  return [name, given];
}

function same(what, found, wanted) {
  check(isDeepStrictEqual(found, wanted), what, `got ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

// The error of a call, if it has this type and occurs without the SDK's own retries.
async function fails(label, kind, ask) {
  const what = `${label}: throws ${kind.name}`;
  const started = Date.now();
  try {
    await ask();
  } catch (error) {
    const took = Date.now() - started;
    check(error instanceof kind && took < 5000, what, `${error} after ${took} ms`);
    return error instanceof kind ? error : undefined;
  }
  check(false, what, "nothing is thrown");
  return undefined;
}

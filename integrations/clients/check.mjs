// The official Node client against a real server: each check is a function, in order.

import assert from "node:assert/strict";
import OpenAI from "openai";

const url = `${process.env.HOLDFAST_URL}/v1`;
const narrow = `${process.env.HOLDFAST_NARROW_URL}/v1`;
const tools = [{
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
}];

const client = (more = {}) => new OpenAI({ baseURL: url, apiKey: "local", ...more });
const says = (content) => [{ role: "user", content }];

async function eventually(what, found) {
  const until = Date.now() + 60_000;
  while (Date.now() < until) {
    const value = await found();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`never happened: ${what}`);
}

async function plain() {
  const answer = await client().chat.completions.create({ model: "gpt-oss", messages: says("plain"), temperature: 0.25 });
  assert.equal(answer.choices[0].message.content, "Hello from the model.");
  assert.equal(answer.usage.total_tokens, 120);
  assert.equal(answer.executor_metadata.iterations, 1);
  const names = [];
  for await (const model of client().models.list()) names.push(model.id);
  assert.deepEqual(names, ["gpt-oss", "executor", "gpt-oss-tools"]);
}

async function streaming() {
  const stream = await client().chat.completions.create({
    model: "gpt-oss", messages: says("work"), stream: true, stream_options: { include_usage: true },
  });
  let text = "", usage;
  const progress = [], reasons = [];
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
    if (chunk.executor_progress) progress.push(chunk.executor_progress.event);
    usage = chunk.usage ?? usage;
  }
  assert.deepEqual([text, reasons], ["It is done.", ["stop"]]);
  assert.deepEqual(progress, ["begins", "asks", "heard", "calls", "called", "asks", "heard"]);
  assert.equal(usage.total_tokens, 240);
}

async function toolsReturnedToTheClient() {
  const messages = says("weather");
  const first = await client().chat.completions.create({ model: "gpt-oss-tools", messages, tools });
  assert.equal(first.choices[0].finish_reason, "tool_calls");
  const [call] = first.choices[0].message.tool_calls;
  assert.equal(call.function.name, "get_weather");
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "Bern" });
  messages.push(first.choices[0].message, { role: "tool", tool_call_id: call.id, content: "sunny" });
  const second = await client().chat.completions.create({ model: "gpt-oss-tools", messages, tools });
  assert.equal(second.choices[0].message.content, "It is sunny.");
  // The client's own runner: it calls our function and asks again until there is an answer.
  const runner = client().chat.completions.runTools({
    model: "gpt-oss-tools",
    messages: says("weather"),
    tools: [{ ...tools[0], function: { ...tools[0].function, parse: JSON.parse, function: ({ city }) => `${city}: sunny` } }],
  });
  assert.equal(await runner.finalContent(), "It is sunny.");
}

async function errors() {
  await assert.rejects(client().chat.completions.create({ model: "gpt-4", messages: says("plain") }),
    (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
  await assert.rejects(client().chat.completions.create({ model: "gpt-oss", messages: [] }),
    (error) => error instanceof OpenAI.BadRequestError && error.code === "invalid_request");
  await assert.rejects(client({ maxRetries: 0 }).chat.completions.create({ model: "gpt-oss", messages: says("fail") }),
    (error) => error.status === 503 && error.code === "gpt_oss_unreachable");
  const stream = await client().chat.completions.create({ model: "gpt-oss", messages: says("fail"), stream: true });
  await assert.rejects(async () => { for await (const _ of stream); },
    (error) => error instanceof OpenAI.APIError && error.code === "gpt_oss_unreachable");
}

/** Begins a run that waits for ever; its name. */
async function slow(base, controller) {
  const stream = await client({ baseURL: base }).chat.completions.create(
    { model: "gpt-oss", messages: says("slow"), stream: true }, { signal: controller.signal });
  const first = await stream[Symbol.asyncIterator]().next();
  return first.value.executor_progress.run_id;
}

async function cancel() {
  const controller = new AbortController();
  const run = await slow(url, controller);
  controller.abort();
  const look = async () => (await (await fetch(`${url}/runs/${run}`)).json()).status;
  assert.equal(await look(), "running");
  assert.equal((await fetch(`${url}/runs/${run}/cancel`, { method: "POST" })).status, 202);
  await eventually("the run is cancelled", async () => (await look()) === "cancelled");
}

async function retryOn429() {
  const statuses = [];
  const watching = async (...args) => {
    const response = await fetch(...args);
    statuses.push(response.status);
    return response;
  };
  const controller = new AbortController();
  const run = await slow(narrow, controller);
  const patient = client({ baseURL: narrow, maxRetries: 10, fetch: watching });
  const asking = patient.chat.completions.create({ model: "gpt-oss", messages: says("plain") });
  await eventually("the client is turned away", () => statuses.includes(429));
  await fetch(`${narrow}/runs/${run}/cancel`, { method: "POST" });
  assert.equal((await asking).choices[0].message.content, "Hello from the model.");
  assert.equal(statuses.at(-1), 200);
  controller.abort();
}

for (const check of [plain, streaming, toolsReturnedToTheClient, errors, cancel, retryOn429]) {
  await check();
  console.log(`node: ${check.name} ok`);
}

// The Node side of bench/call: what a Node program would put around a tool by hand.
//
// Driven over standard input, one command a line, so that its rounds lie between those of the
// other subjects: `{"calls": 1000, "batch": 64, "log": true, "per_call": false}` is answered by one
// line with the time of every batch, or of every call when that is asked for.

import { createHash } from 'node:crypto';
import { createWriteStream, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import {
  circuitBreaker,
  ConsecutiveBreaker,
  ExponentialBackoff,
  handleAll,
  retry,
  timeout,
  TimeoutStrategy,
  wrap,
} from 'cockatiel';

// The same bound as Holdfast's memory store.
const RECORDS_MAX = 25_000;
const TIMEOUT_MS = 30_000;

const [templatePath, sinkPath] = process.argv.slice(2);
const template = JSON.parse(readFileSync(templatePath, 'utf8'));
const sink = createWriteStream(sinkPath);

const policy = wrap(
  retry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() }),
  circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) }),
  timeout(TIMEOUT_MS, TimeoutStrategy.Aggressive),
);

const records = new Map();

/** JSON with the members of every object in order. */
function canonical(value) {
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join(',')}]`;
  }
  if (value !== null && typeof value === 'object') {
    const members = Object.keys(value)
      .sort()
      .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}

function keyOf(call) {
  return createHash('sha256')
    .update(`${call.session}\0${call.tool}\0${call.requestId}\0`)
    .update(canonical(call.params))
    .digest('hex');
}

/** Resolves at once, or when the sink has caught up: a full buffer must not grow without end. */
function line(fields) {
  if (!sink.write(`${JSON.stringify(fields)}\n`)) {
    return once(sink, 'drain');
  }
  return undefined;
}

async function noop(params) {
  return { ok: true, path: params.path };
}

async function runOnce(call) {
  const key = keyOf(call);
  const known = records.get(key);
  if (known !== undefined) {
    return known;
  }
  const running = policy.execute(() => noop(call.params));
  records.set(key, running);
  if (records.size > RECORDS_MAX) {
    records.delete(records.keys().next().value);
  }
  try {
    return await running;
  } catch (error) {
    records.delete(key);
    throw error;
  }
}

async function callLogged(call) {
  const begun = Date.now();
  const fields = { requestId: call.requestId, toolName: call.tool, sessionKey: call.session };
  const full = line({
    timestamp: new Date(begun).toISOString(),
    level: 'info',
    event: 'tool_call_start',
    ...fields,
    state: 'started',
  });
  if (full) await full;
  const output = await runOnce(call);
  const ended = Date.now();
  const fullAgain = line({
    timestamp: new Date(ended).toISOString(),
    level: 'info',
    event: 'tool_call_end',
    ...fields,
    state: 'success',
    attempt: 1,
    elapsedMs: ended - begun,
    fromCache: false,
  });
  if (fullAgain) await fullAgain;
  return output;
}

let made = 0;

/** A call nobody made before: its own request, its own arguments. */
function nextCall() {
  made += 1;
  const tail = String(made).padStart(12, '0');
  return {
    requestId: `0198c0de-0000-7000-8000-${tail}`,
    session: 'agent:main:session-0042',
    tool: 'send_message',
    params: { ...template, path: `reports/2026/quarter-${tail}.md` },
  };
}

async function run({ calls, batch, log, per_call: perCall }) {
  const call = log ? callLogged : runOnce;
  const each = [];
  const batches = [];
  for (let done = 0; done < calls; done += batch) {
    const prepared = Array.from({ length: batch }, nextCall);
    if (perCall) {
      for (const one of prepared) {
        const begun = process.hrtime.bigint();
        await call(one);
        each.push(Number(process.hrtime.bigint() - begun));
      }
    } else {
      const begun = process.hrtime.bigint();
      for (const one of prepared) {
        await call(one);
      }
      batches.push(Number(process.hrtime.bigint() - begun));
    }
  }
  return { batches_ns: batches, each_ns: each };
}

for await (const command of createInterface({ input: process.stdin })) {
  const answer = await run(JSON.parse(command));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

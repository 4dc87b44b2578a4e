// Long texts cross to the addon by themselves: what the guard says is what it says of the same calls as plain JSON.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { lines } from "./rig/log.mjs";

const packages = join(process.env.HOLDFAST_OPENCLAW_CACHE, "packages/tool-guard");
const addon = createRequire(import.meta.url)(join(packages, "native/holdfast.linux-x64-gnu.node"));
const { bounded, comparable } = await import(pathToFileURL(join(packages, "dist/shared/meant.js")));
const { Crossing } = await import(pathToFileURL(join(packages, "dist/shared/crossing.js")));

const VALUES = 800;
const TURNS = 30;
const CALLS_A_TURN = 30;
const NUL = "\0";
/** A gigabyte of arguments in all, and what a process may grow by for it. */
const CALLS = 20_000;
const CALL_BYTES = 50_000;
const GROWTH_BYTES_MAX = 100_000_000;

/** Mulberry32: the same numbers from the same seed. */
function randomly(seed) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count) => Math.floor(next() * count);
  return { below, of: (list) => list[below(list.length)] };
}

/** Texts at the lengths and with the characters where the two ways part, some of them nearly the same. */
const LONG = ["x", "line\n", '"quoted" \\ ', "é", "日本", "𝄞", `${NUL}7`, "\u2028", "1 "].flatMap((part) =>
  [1_023, 1_024, 1_025, 5_000, 131_072, 131_073, 140_000].map((length) => part.repeat(length).slice(0, length)),
);
const TEXTS = ["", " ", "a", "a ", `${NUL}0`, `${NUL}1`, NUL, `${NUL}x`, "\ud800", "\udc00 ", "𝄞", ...LONG, ...LONG.map((text) => `${text}!`), ...LONG.map((text) => `${text}\ud801`)];

function value(random, depth = 0) {
  switch (random.below(depth > 3 ? 6 : 9)) {
    case 0:
      return random.of([null, true, false, undefined]);
    case 1:
      return random.of([0, -0, 1, 1.5, 1e21, 9007199254740993, NaN]);
    case 2:
    case 3:
    case 4:
    case 5:
      return random.of(TEXTS);
    case 6:
      return Array.from({ length: random.below(4) }, () => value(random, depth + 1));
    default:
      return Object.fromEntries(Array.from({ length: random.below(4) }, () => [random.of(["path", "content", "b", " b", `${NUL}0`, "é"]), value(random, depth + 1)]));
  }
}

/** The way all arguments crossed before long texts did by themselves: the reference. */
const asJson = (args) => ({ args: JSON.stringify(args, (_, part) => (typeof part === "string" ? bounded(part) : part)) ?? "null" });
const crossing = new Crossing();
function guardedCall(tool, { args, texts }, turn = "t") {
  const call = { session: "s", turn, tool, callId: "call_1", args };
  if (texts === undefined) return new addon.GuardedCall(call);
  const { bytes, ends } = crossing.all(texts);
  return new addon.GuardedCall(call, bytes, ends);
}
function observe(guard, guarded, outcome, text) {
  const { bytes, length } = crossing.one(text);
  return guard.observe(guarded, outcome, bytes, length);
}
const markOf = (written) => guardedCall("write", written).fingerprint;
/** Whether the addon reads it as JSON: it knows no lone surrogates. */
const isReadable = ({ args }) => !/\\ud[89a-f]/.test(args);

// Before the others, whose calls never end either.
test("calls that never end hold little, and the log says of those that it does not know", async (t) => {
  const scratch = await mkdtemp(join(tmpdir(), "holdfast-crossing-"));
  t.after(() => rm(scratch, { recursive: true, force: true }));
  const file = join(scratch, "never.log");
  const guard = new addon.ToolGuard("{}", file);
  const content = "x".repeat(CALL_BYTES);
  const before = process.memoryUsage.rss();
  const kept = [];
  for (let n = 0; n < CALLS / 4; n++) kept.push(guardedCall("write", comparable({ content }), `never ${n}`));
  const grown = process.memoryUsage.rss() - before;
  assert.ok(grown < GROWTH_BYTES_MAX, `${grown} bytes`);
  observe(guard, kept[0], { ending: "failed" }, "no such file");
  observe(guard, kept.at(-1), { ending: "failed" }, "no such file");
  guard.writeLog();
  const [first, last] = await lines(file, 2);
  assert.match(JSON.stringify(first.args), /xxxxx/);
  assert.match(last.args, /^\(50\d{3} bytes, not kept\)$/);
  // What has ended makes room again.
  for (const made of kept) observe(guard, made, { ending: "succeeded" }, "ok");
  observe(guard, guardedCall("write", comparable({ content }), "again"), { ending: "failed" }, "no such file");
  guard.writeLog();
  const entries = await lines(file, 3);
  assert.match(JSON.stringify(entries[2].args), /xxxxx/);
});

test("calls are the same one exactly where their JSON says so", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = randomly(seed);
  const [marks, forms] = [new Map(), new Map()];
  let apart = 0;
  for (let n = 0; n < VALUES; n++) {
    const args = value(random);
    const [plain, written] = [asJson(args), comparable(args)];
    const [expected, mark] = [markOf(plain), markOf(written)];
    const said = () => `seed ${seed}, value ${n}: ${inspect(args, { maxStringLength: 20, depth: 9 })}`;
    if (written.texts?.length) apart += 1;
    if (isReadable(plain)) assert.equal(mark, expected, said());
    // Also where neither way can read it.
    assert.equal(marks.get(expected) ?? mark, mark, said());
    assert.equal(forms.get(mark) ?? expected, expected, said());
    marks.set(expected, mark);
    forms.set(mark, expected);
  }
  assert.ok(apart > VALUES / 10, `${apart} values had a text apart`);
});

test("what can not be read differs wherever one of its texts does", () => {
  const deep = (text) => JSON.parse(`${"[".repeat(200)}${JSON.stringify({ text, broken: "\ud800" })}${"]".repeat(200)}`);
  const long = "x".repeat(2_000);
  assert.notEqual(markOf(comparable(deep(long))), markOf(comparable(deep(`${long}!`))));
  assert.equal(markOf(comparable(deep(long))), markOf(comparable(deep(long))));
});

test("texts cross as they are, but for what no UTF-8 can say", () => {
  const long = "é𝄞".repeat(200_000);
  for (const texts of [[], [""], ["", "a", ""], ["é", "日本", "𝄞"], TEXTS, [long, "x", long]]) {
    const { bytes, ends } = crossing.all(texts);
    const read = ends.map((end, n) => Buffer.from(bytes.subarray(ends[n - 1] ?? 0, end)).toString());
    assert.deepEqual(read, texts.map((text) => text.toWellFormed()));
  }
  for (const text of [...TEXTS.map(bounded), long]) {
    const { bytes, length } = crossing.one(text);
    assert.equal(Buffer.from(bytes.subarray(0, length)).toString(), text.toWellFormed());
  }
});

test("the guard's answers are the same in turns of any calls", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = randomly(seed);
  const guards = [new addon.ToolGuard("{}"), new addon.ToolGuard("{}")];
  const seen = new Set();
  for (let turn = 0; turn < TURNS; turn++) {
    // Few of them, so that they come again.
    const some = Array.from({ length: 3 }, () => value(random));
    for (let n = 0; n < CALLS_A_TURN; n++) {
      const args = random.of(some);
      const tool = random.of(["write", "exec"]);
      const [outcome, text] = random.of([
        [{ ending: "succeeded", mutating: random.below(2) === 0 }, random.of(TEXTS)],
        [{ ending: "exitedNonZero" }, random.of(["1 failed", "2 failed"])],
        [{ ending: "failed" }, random.of(["Missing required parameter: path", "ENOENT: no such file", "timeout", random.of(TEXTS)])],
      ]);
      const answers = [asJson(args), comparable(args)].map((written, which) => {
        const guarded = guardedCall(tool, written, `turn ${turn}`);
        const refusal = guards[which].check(guarded);
        const ended = refusal ? [{ ending: "blocked" }, refusal.text] : [outcome, bounded(text)];
        return { refusal, answer: observe(guards[which], guarded, ...ended) };
      });
      assert.deepEqual(answers[1], answers[0], `seed ${seed}, turn ${turn}, call ${n}`);
      seen.add(answers[0].answer.action);
    }
  }
  assert.ok(seen.has("loop-detected") && seen.has("hard-cap"), [...seen].join());
});

test("calls that have ended hold no memory, so that many in one go pile up nothing", () => {
  const guard = new addon.ToolGuard("{}");
  const content = "x".repeat(CALL_BYTES);
  const before = process.memoryUsage.rss();
  // Not one round of the event loop in between: nothing that waits for one is given back.
  for (let n = 0; n < CALLS; n++) {
    const made = guardedCall("write", comparable({ path: `${n}`, content }), `turn ${n >> 5}`);
    assert.equal(guard.check(made), null);
    observe(guard, made, { ending: "succeeded", mutating: true }, "ok");
  }
  const grown = process.memoryUsage.rss() - before;
  assert.ok(grown < GROWTH_BYTES_MAX, `${grown} bytes`);
});

// Makes the addon's declarations from what its macros wrote down while compiling (one JSON object a line).
//
//   node types.mjs DEFINITIONS OUTPUT

import { readFileSync, writeFileSync } from "node:fs";

const [source, target] = process.argv.slice(2);
const definitions = readFileSync(source, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const methods = new Map(definitions.filter(({ kind }) => kind === "impl").map((made) => [made.name, made.def]));

const indented = (text) => text.split("\n").map((line) => (line.trim() ? `  ${line.trim()}` : "")).join("\n");

function declaration({ kind, name, def }) {
  switch (kind) {
    case "interface":
      return `export interface ${name} {\n${indented(def)}\n}`;
    case "struct":
      return `export declare class ${name} {\n${indented(methods.get(name) ?? "")}\n}`;
    case "string_enum":
      return `export type ${name} = ${[...def.matchAll(/'([^']*)'/g)].map((found) => found[0]).join(" | ")};`;
    case "fn":
      return `export declare ${def};`;
    case "impl":
      return undefined;
    default:
      throw new Error(`types.mjs does not know the kind ${kind} of ${name}`);
  }
}

const parts = definitions
  .filter(({ name }) => name !== "probePanic")
  .map((made) => [made, declaration(made)])
  .filter(([, text]) => text !== undefined)
  .map(([made, text]) => `${made.js_doc ?? ""}${text}`);
writeFileSync(target, `// Generated from crates/node. Do not edit.\n\n${parts.join("\n\n")}\n`);

// Makes a package's README.md: its own first lines, and what the guide says to whoever has installed it.
//
//   node readme.mjs GUIDE INTRODUCTION PLUGIN OUTPUT

import { readFileSync, writeFileSync } from "node:fs";

/** The guide's sections for each plugin, in their order there. */
const ABOUT = {
  "tool-guard": ["What the guard does", "Made once"],
  "clawos-l0": ["Sessions"],
  "clawos-trust": ["Whose words"],
};
const ABOUT_ALL = ["Install", "Configure", "Older OpenClaw", "When something is wrong", "Uninstall", "What OpenClaw does not allow"];

const [guide, introduction, plugin, output] = process.argv.slice(2);
const wanted = new Set([...ABOUT_ALL, ...ABOUT[plugin]]);
const sections = readFileSync(guide, "utf8").split(/^(?=## )/m).slice(1);
const titleOf = (section) => section.slice("## ".length, section.indexOf("\n"));
const kept = sections.filter((section) => wanted.has(titleOf(section)));
const missing = [...wanted].filter((title) => !kept.some((section) => titleOf(section) === title));
if (missing.length > 0) throw new Error(`the guide has no section ${missing.join(", ")}`);

const anchors = new Set(kept.map((section) => `#${titleOf(section).toLowerCase().replaceAll(" ", "-")}`));
/** Links to pages and sections that are not here become words. */
const linked = (text) => text.replace(/\[([^\]]*)\]\(([^)\s]+)\)/g, (link, words, to) => (anchors.has(to) || /^https?:/.test(to) ? link : words));
writeFileSync(output, `${readFileSync(introduction, "utf8").trimEnd()}\n\n${kept.map(linked).join("").trimEnd()}\n`);

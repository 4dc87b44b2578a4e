// What reads a stored session in the host: hands out the entries that a test put there, in pages as it does.
export const readSessionTranscriptEvents = async () => {
  globalThis.stored.whole += 1;
  return globalThis.stored.entries;
};
export const readSessionTranscriptRawDelta = async ({ cursor = "0", maxEvents, maxBytes }) => {
  const { entries, pages } = globalThis.stored;
  const from = Number(cursor);
  const events = [];
  let [bytes, requiredBytes] = [0, undefined];
  for (const event of entries.slice(from, from + maxEvents)) {
    const more = JSON.stringify(event).length + 1;
    if (bytes + more > maxBytes) {
      if (events.length === 0) requiredBytes = more;
      break;
    }
    bytes += more;
    events.push({ event, seq: from + events.length });
  }
  pages.push({ events: events.length, bytes });
  const hasMore = from + events.length < entries.length;
  return { kind: "page", cursor: String(from + events.length), events, hasMore, ...(requiredBytes !== undefined && { requiredBytes }) };
};

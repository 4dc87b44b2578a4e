// Stands between OpenClaw and Holdfast, passes everything on as it comes, and keeps what passed.

import { once } from "node:events";
import { createServer, request } from "node:http";

/** Starts it in front of a server; `heard(text)` is told each piece of an answer when it passes. */
export async function startProxy(port, target, heard = () => undefined) {
  const exchanges = [];
  const server = createServer((asked, answer) => {
    const exchange = { body: "", pieces: [] };
    exchanges.push(exchange);
    const onward = request({ host: "127.0.0.1", port: target, path: asked.url, method: asked.method, headers: { ...asked.headers, host: `127.0.0.1:${target}` } }, (answered) => {
      answer.writeHead(answered.statusCode, answered.headers);
      answered.on("data", (piece) => {
        exchange.pieces.push(piece.toString());
        heard(piece.toString());
        answer.write(piece);
      });
      answered.on("end", () => answer.end());
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    asked.on("data", (piece) => {
      exchange.body += piece;
      onward.write(piece);
    });
    asked.on("end", () => onward.end());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    /** The requests for completions, each with the pieces of its answer. */
    completions: () => exchanges.filter(({ body }) => body.includes('"messages"')).map(({ body, pieces }) => ({ asked: JSON.parse(body), pieces })),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

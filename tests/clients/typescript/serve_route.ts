// Serves a route of Next.js, given as a module, at a port: as Next.js does, with `Request` and `Response`.
import { createServer } from "node:http";

const [route, port] = process.argv.slice(2);
const { POST } = await import(route!);

createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
  const body = incoming.method === "POST" ? Buffer.concat(chunks) : null;
  const request = new Request("http://shop.test/hook", { method: incoming.method!, headers, body });
  const answer: Response = incoming.method === "POST" ? await POST(request) : new Response(null, { status: 405 });
  outgoing.writeHead(answer.status).end();
}).listen(Number(port), "127.0.0.1");

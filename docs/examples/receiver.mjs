// A shop's webhook endpoint in one file of plain Node.js: verifies each notification and prints it.
// WEBHOOK_SECRET=whsec_... node docs/examples/receiver.mjs 9000
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const TOLERANCE_SECONDS = 300;
const LARGEST_BODY = 1_000_000;

// `whsec_` is followed by the key in base64; any other text is the key itself.
function keyOf(secret) {
  if (secret.startsWith("whsec_")) return Buffer.from(secret.slice("whsec_".length), "base64");
  return Buffer.from(secret, "utf8");
}

// Verify the raw bytes before anything parses them. While a secret is renewed there are two signatures.
function isGenuine(headers, body) {
  const { "webhook-id": id = "", "webhook-timestamp": sentAt = "", "webhook-signature": given = "" } = headers;
  const age = Math.abs(Date.now() / 1000 - Number(sentAt));
  if (!(age <= TOLERANCE_SECONDS)) return false; // written so that NaN is refused too
  const mac = createHmac("sha256", key).update(`${id}.${sentAt}.`).update(body).digest("base64");
  const expected = Buffer.from(`v1,${mac}`);
  return given.split(" ").some((entry) => {
    const signature = Buffer.from(entry);
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

async function bodyOf(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > LARGEST_BODY) throw new Error("too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request, response) {
  const body = await bodyOf(request);
  if (!isGenuine(request.headers, body)) {
    response.writeHead(400).end();
    console.log("refused");
    return;
  }
  const message = JSON.parse(body);
  // Yours is a table in which event_id is unique: store first, answer, and work from there.
  const isNew = !seen.has(message.event_id);
  seen.add(message.event_id);
  response.writeHead(204).end();
  if (isNew) console.log("genuine", message.event, JSON.stringify(message.data));
}

const key = keyOf(process.env.WEBHOOK_SECRET ?? "");
const port = Number(process.argv[2]);
const seen = new Set();
if (!port || key.length === 0) {
  console.error("usage: WEBHOOK_SECRET=whsec_... node receiver.mjs PORT");
  process.exit(1);
}
createServer((request, response) => receive(request, response).catch(() => request.destroy())).listen(
  port,
  "127.0.0.1",
  () => console.log(`listening on http://127.0.0.1:${port}`),
);

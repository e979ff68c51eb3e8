// Verify a notification with Node's own crypto: a second language that knows nothing of our code.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

const { secret, headers, body } = JSON.parse(readFileSync(0, "utf8"));
const key = Buffer.from(secret.slice("whsec_".length), "base64");
const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
const expected = createHmac("sha256", key).update(content).digest();
const good = headers["webhook-signature"].split(" ").some((entry) => {
  const [version, signature] = entry.split(",");
  const given = Buffer.from(signature, "base64");
  return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
});
process.exit(good ? 0 : 1);

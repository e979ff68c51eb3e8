// A shop in Express, in one file: verifies webhooks, and ships each order once. Node.js 22.13 or newer.
// npm install express thai-qr-payments
// WEBHOOK_SECRET=whsec_... node with_express.mjs 9000
import { DatabaseSync } from "node:sqlite";
import express from "express";
import { SignatureError, webhooks } from "thai-qr-payments";

const database = new DatabaseSync(process.env.SHOP_DB ?? "shop.sqlite3");
database.exec("PRAGMA busy_timeout = 5000; CREATE TABLE IF NOT EXISTS seen_event (event_id TEXT PRIMARY KEY)");
const insert = database.prepare("INSERT OR IGNORE INTO seen_event VALUES (?)");

// The event and what it does are one commit: both are stored, or the service sends it again.
function store(event) {
  database.exec("BEGIN IMMEDIATE");
  try {
    if (insert.run(event.event_id).changes) handle(event);
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

// Change your own tables here. Call nobody: a repeat after an error would call again.
function handle(event) {
  if (event.event === "payment.succeeded") console.log("ship", event.data.reference);
}

const app = express();

// `raw` on this route, and no `express.json()` before it: the signature is over the bytes as they arrived.
app.post("/", express.raw({ type: () => true }), async (request, response) => {
  let event;
  try {
    event = await webhooks.unwrap(request.body ?? "", request.headers, process.env.WEBHOOK_SECRET);
  } catch (error) {
    if (!(error instanceof SignatureError)) throw error;
    response.sendStatus(400);
    return;
  }
  store(event);
  response.sendStatus(204);
});

app.listen(Number(process.argv[2]), "127.0.0.1");

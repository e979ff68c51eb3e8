// A route of Next.js, in one file: verifies webhooks, and ships each order once. Node.js 22.13 or newer.
// npm install thai-qr-payments, and put this file into your project as app/hook/route.ts.
import { DatabaseSync } from "node:sqlite";
import { SignatureError, webhooks, type WebhookEvent } from "thai-qr-payments";

export const runtime = "nodejs";

const database = new DatabaseSync(process.env["SHOP_DB"] ?? "shop.sqlite3");
database.exec("PRAGMA busy_timeout = 5000; CREATE TABLE IF NOT EXISTS seen_event (event_id TEXT PRIMARY KEY)");
const insert = database.prepare("INSERT OR IGNORE INTO seen_event VALUES (?)");

export async function POST(request: Request): Promise<Response> {
  let event: WebhookEvent;
  try {
    // The text as it arrived: `request.json()` would have parsed it.
    event = await webhooks.unwrap(await request.text(), request.headers, process.env["WEBHOOK_SECRET"] ?? "");
  } catch (error) {
    if (error instanceof SignatureError) return new Response(null, { status: 400 });
    throw error;
  }
  store(event);
  return new Response(null, { status: 204 });
}

// The event and what it does are one commit: both are stored, or the service sends it again.
function store(event: WebhookEvent): void {
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
function handle(event: WebhookEvent): void {
  if (event.event === "payment.succeeded") console.log("ship", event.data.reference);
}

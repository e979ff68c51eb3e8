// A shop written with the client alone: a code, its webhook, a refund, lists and errors. Prints what it saw.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SignatureError, ThaiQR, ValidationError, webhooks, type WebhookEvent } from "thai-qr-payments";

const client = new ThaiQR();
const inbox: WebhookEvent[] = [];
const waiting: (() => void)[] = [];
let refusals = 0;
let secret = "whsec_" + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64");

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    inbox.push(await webhooks.unwrap(Buffer.concat(chunks), request.headers, secret));
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(error instanceof SignatureError ? 400 : 500).end();
    refusals += error instanceof SignatureError ? 1 : 0;
  }
  for (const wake of waiting.splice(0)) wake();
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;

/** Wait until messages that arrived make something true. */
async function until<T>(find: () => T | undefined): Promise<T> {
  for (;;) {
    const found = find();
    if (found !== undefined) return found;
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
}

const hook = await client.webhooks.create({ url, events: ["payment.succeeded", "refund.completed"], secret });
const order = { amount: 150_000, reference: "typescript-17", metadata: { table: 4 } };
const code = await client.qrCodes.create(order, { idempotencyKey: "typescript-17" });
const again = await client.qrCodes.create(order, { idempotencyKey: "typescript-17" });
await client.sandbox.pay({ qr_data: code.qr_data });
const paid = await until(() => {
  for (const event of inbox) {
    if (event.event === "payment.succeeded" && event.data.payment_id === code.payment_id) return event.data;
  }
  return undefined;
});

const refund = await client.refunds.create({ payment_id: code.payment_id, amount: paid.amount / 2 });
const sentBack = await until(() => {
  for (const event of inbox) {
    if (event.event === "refund.completed" && event.data.refund_id === refund.refund_id) return event.data;
  }
  return undefined;
});
const payment = await client.payments.get(code.payment_id);

const made: string[] = [];
for (let number = 0; number < 5; number += 1) {
  made.unshift((await client.qrCodes.create({ amount: 100 + number, reference: "typescript-paged" })).payment_id);
}
const listed: string[] = [];
const list = client.payments.list({ reference: "typescript-paged", page_size: 2 });
for await (const each of list) listed.push(each.payment_id);
const { total } = await list.firstPage();
const feed: (number | null)[] = [];
for await (const event of client.events.follow({ page_size: 3 })) feed.push(event.sequence);

const refused = await client.qrCodes.create({ amount: 99 }).catch((error: unknown) => error);
if (!(refused instanceof ValidationError)) throw refused;

const withdrawal = await client.withdrawals.create({
  amount: 20_000,
  bank_code: "SCB",
  bank_account: "4051234567",
  account_name: "Somtam House",
});
const slip = await client.slips.check({ picture: new Blob(["no picture"]), payment_id: code.payment_id, amount: 150_000 });
const balance = await client.balance.get();
const moves: string[] = [];
for await (const move of client.balance.transactions()) moves.push(move.type);

// With another secret the receiver refuses what the service signs with the first one.
const isKept = (await client.webhooks.getSecret(hook.webhook_id)).secret === secret;
const before = refusals;
secret = "whsec_" + Buffer.alloc(32).toString("base64");
const ping = await client.webhooks.test(hook.webhook_id);
await until(() => (refusals > before ? true : undefined));
const deliveries: string[] = [];
for await (const delivery of client.webhooks.deliveries(hook.webhook_id)) deliveries.push(delivery.delivery_id);
await client.webhooks.delete(hook.webhook_id);
server.close();

console.log(
  JSON.stringify({
    repeated: again.qr_code_id === code.qr_code_id,
    paid,
    sentBack,
    payment,
    listed: listed.join() === made.join(),
    total,
    feed,
    refused: { code: refused.code, param: refused.param, status: refused.status, requestId: refused.requestId },
    withdrawal,
    slip: slip.verdict,
    balance,
    moves,
    isKept,
    before,
    isDelivered: deliveries.includes(ping.delivery_id),
    banks: (await client.banks.list()).length,
  }),
);

// Never run: the compiler accepts what is right here, and refuses each line after `@ts-expect-error`.
import { ThaiQR, webhooks, type FeedEvent, type Payment, type QrCode, type Refund, type WebhookEvent } from "thai-qr-payments";

const client = new ThaiQR({ apiKey: "tq_test_x", baseUrl: "https://pay.example.com", timeout: 5_000, maxRetries: 1 });

const code: QrCode = await client.qrCodes.create({ amount: 100, metadata: { table: 4 } }, { idempotencyKey: "order-1" });
await client.qrCodes.create({ amount: 100, currency: "THB" });
// @ts-expect-error the amount is required
await client.qrCodes.create({ reference: "order-1" });
// @ts-expect-error an amount is a number of satang
await client.qrCodes.create({ amount: "100" });
// @ts-expect-error a misspelt field
await client.qrCodes.create({ amount: 100, refernce: "order-1" });
// @ts-expect-error there is no other currency
await client.qrCodes.create({ amount: 100, currency: "USD" });
// @ts-expect-error only a POST has an idempotency key
await client.qrCodes.get(code.qr_code_id, { idempotencyKey: "order-1" });

await client.qrCodes.get(code.qr_code_id, { timeout: 2_000, maxRetries: 0 });
const paid: Payment = await client.payments.waitUntilPaid("pay_1", { seconds: 60 });
const message: { body: string } = await webhooks.signedMessage("webhook.ping", { webhook_id: paid.payment_id }, "secret");
// @ts-expect-error the data of another event
await webhooks.signedMessage("refund.completed", { webhook_id: message.body }, "secret");

for await (const payment of client.payments.list({ status: "succeeded", start_date: new Date(), page_size: 10 })) {
  const found: Payment = payment;
  const amount: number = found.amount;
  console.log(amount);
}
// @ts-expect-error no such status
client.payments.list({ status: "paid" });
// @ts-expect-error pages are counted by the client
client.payments.list({ offset: 20 });
const total: number | undefined = (await client.refunds.list().firstPage()).total;

await client.sandbox.advanceClock({ advance_minutes: 5 });
// @ts-expect-error one of the two is required
await client.sandbox.advanceClock({});
const gone: undefined = await client.webhooks.delete("wh_1");

const event: WebhookEvent = await webhooks.unwrap("", new Headers(), "secret");
switch (event.event) {
  case "refund.completed": {
    const refund: Refund = event.data;
    console.log(refund.amount);
    break;
  }
  case "payment.succeeded":
    // @ts-expect-error this event is about a payment
    console.log(event.data.refund_id);
    break;
  case "payment.exception":
    console.log(event.data.exception.reason);
    break;
  // @ts-expect-error no such event
  case "payment.paid":
    break;
}
for await (const each of client.events.follow({ after_sequence: 7, event: "payment.succeeded" })) {
  const fed: FeedEvent = each;
  const place: number | null = fed.sequence;
  if (fed.event === "payment.succeeded") console.log(fed.data.payment_id, place);
}
console.log(total, gone);

// A whole purchase by the types of openapi-typescript. Prints the refund as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [baseUrl, key] = [process.env.BASE_URL!, process.env.SECRET_KEY!];
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

function unwrap<T>({ data, error }: { data?: T; error?: components["schemas"]["Error"] }): T {
  if (data === undefined) throw new Error(`${error?.error.code}: ${error?.error.message}`);
  return data;
}

async function until<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const value = await read();
    if (isDone(value)) return value;
    if (Date.now() > deadline) throw new Error(`Not done in a minute: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const code = unwrap(await client.POST("/v1/qr-codes", {
  params: { header: { "Idempotency-Key": crypto.randomUUID() } },
  body: { amount: 150000, currency: "THB", reference: "by-typescript" },
}));
unwrap(await client.POST("/sandbox/v1/payments", { body: { qr_data: code.qr_data, scenario: "paid" } }));
const payment = await until(
  async () => unwrap(await client.GET("/v1/payments/{payment_id}", { params: { path: { payment_id: code.payment_id } } })),
  ({ status }) => status !== "pending",
);
if (payment.status !== "succeeded") throw new Error(`The payment is ${payment.status}`);
const { refund_id } = unwrap(await client.POST("/v1/refunds", { body: { payment_id: code.payment_id, amount: 60000 } }));
const refund = await until(
  async () => unwrap(await client.GET("/v1/refunds/{refund_id}", { params: { path: { refund_id } } })),
  ({ status }) => status !== "pending",
);
console.log(JSON.stringify(refund));

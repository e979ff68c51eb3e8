// Creates a code over a flawed network, and prints it with all payments of its reference.
import { ThaiQR } from "thai-qr-payments";

const client = new ThaiQR();
const reference = process.argv[2]!;
const code = await client.qrCodes.create({ amount: 10_000, reference });
const found: string[] = [];
for await (const payment of client.payments.list({ reference })) found.push(payment.payment_id);
console.log(JSON.stringify({ created: code.payment_id, found }));

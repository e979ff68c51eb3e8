/** Bring the payments of the shop to what the service says. To do this twice changes nothing. */

import { processPaymentWorkflow } from "@medusajs/medusa/core-flows";
import type { MedusaContainer } from "@medusajs/framework/types";
import { ContainerRegistrationKeys, Modules } from "@medusajs/framework/utils";
import type { FeedEvent, Payment, PaymentException, Refund, ThaiQR } from "thai-qr-payments";
import { sessionOf, shown } from "./service.js";

export interface Shop {
  container: MedusaContainer;
  client: ThaiQR;
}

const PAGES = "in the pages of your shop at the payment service";
const DECIDE = `Accept or return it ${PAGES} (Exceptions). Ship nothing before.`;

/** Throws ThaiQRError, and what Medusa throws. */
export async function applyEvent(shop: Shop, event: FeedEvent): Promise<void> {
  switch (event.event) {
    case "payment.succeeded":
    case "payment.failed":
    case "payment.exception":
    case "payment.exception_resolved":
      // Of several events of a payment the newest counts, so the payment is read.
      if (sessionOf(event.data)) await applyPayment(shop, await shop.client.payments.get(event.data.payment_id));
      break;
    case "refund.completed":
    case "refund.failed": {
      const payment = await shop.client.payments.get(event.data.payment_id);
      if (sessionOf(payment)) await noteRefund(shop, await applyPayment(shop, payment), event.data);
    }
  }
}

/** Returns the title of notifications about the payment. */
async function applyPayment(shop: Shop, payment: Payment): Promise<string> {
  let found = await findSession(shop, payment);
  const isNew = (payment.status === "succeeded" || payment.status === "refunded") && !found?.order;
  // Medusa refunds by itself what it cannot complete.
  if (isNew && found && payment.refunds.pending + payment.refunds.completed === 0) {
    const input = { action: "captured" as const, data: { session_id: found.id, amount: payment.amount / 100 } };
    await processPaymentWorkflow(shop.container).run({ input });
    found = await findSession(shop, payment);
  }
  if (found) await keep(shop, payment, found);
  const title = `Thai QR payment ${payment.payment_id}${found?.order ? ` of order #${found.order.display_id}` : ""}`;
  if (isNew && !found?.order) {
    const reason = found ? "its cart could not be completed" : "its cart has another code now";
    const text = `The customer paid ${payment.amount_display}, but ${reason}. See whether it is refunded ${PAGES}.`;
    await note(shop, title, `${payment.payment_id}-paid`, text);
  }
  for (const exception of payment.exceptions) {
    await note(shop, title, `${exception.exception_id}-${exception.status}`, textOf(payment, exception));
  }
  if (payment.hold) {
    const text = `Do not ship yet: ask the customer who paid, then lift the hold ${PAGES}, or refund the order.`;
    await note(shop, title, `${payment.payment_id}-hold`, text);
  }
  return title;
}

interface Found {
  id: string;
  amount: number;
  currency_code: string;
  data: Record<string, unknown>;
  payment?: { id: string; data: Record<string, unknown> } | null;
  order?: { display_id: number } | undefined;
}

/** The session of a payment with its payment and its order. */
async function findSession({ container }: Shop, payment: Payment): Promise<Found | undefined> {
  const query = container.resolve(ContainerRegistrationKeys.QUERY);
  const { data: sessions } = await query.graph({
    entity: "payment_session",
    fields: ["id", "amount", "currency_code", "data", "payment_collection_id", "payment.id", "payment.data"],
    filters: { id: sessionOf(payment) ?? "" },
  });
  const session = sessions[0] as (Found & { payment_collection_id: string }) | undefined;
  // A session may get a new code. Then this payment is of the old one.
  if (!session || session.data["payment_id"] !== payment.payment_id) return undefined;
  const { data: links } = await query.graph({
    entity: "order_payment_collection",
    fields: ["order.display_id"],
    filters: { payment_collection_id: session.payment_collection_id },
  });
  return { ...session, order: (links[0] as { order?: Found["order"] } | undefined)?.order };
}

/** Write on the payment, or on the session before it is paid, what the service says. */
async function keep({ container }: Shop, payment: Payment, found: Found): Promise<void> {
  const { id, amount, currency_code } = found;
  const payments = container.resolve(Modules.PAYMENT);
  if (found.payment) {
    const kept = { id: found.payment.id, data: { ...found.payment.data, ...shown(payment) } };
    await payments.updatePayment(kept); // Its type does not name `data`.
  } else {
    await payments.updatePaymentSession({ id, amount, currency_code, data: { ...found.data, ...shown(payment) } });
  }
}

/** What happened to money that did not fit, and what the staff of the shop do now. */
function textOf(payment: Payment, exception: PaymentException): string {
  const [arrived, asked] = [exception.amount_display, payment.amount_display];
  const size = exception.amount > payment.amount ? "much" : "little";
  const opened = {
    amount_mismatch: `Paid too ${size}: ${arrived} arrived instead of ${asked}. ${DECIDE}`,
    duplicate: `Paid twice: ${arrived} arrived once more. Return it ${PAGES} (Exceptions).`,
    late: `Paid late: ${arrived} arrived after the code had expired. ${DECIDE}`,
    time_mismatch: `Wrong time: the bank says that ${arrived} were paid before the code was made. ${DECIDE}`,
  };
  if (exception.status === "open") return opened[exception.reason];
  const decided: Partial<Record<PaymentException["status"], string>> = {
    accepted: "was accepted",
    sent_back: "went back to the customer",
    taken_back: "went back to the customer",
    attached: "belongs to another payment",
    merged: "was reported twice",
  };
  const what = decided[exception.status] ?? `is not settled (${exception.status}): see Exceptions ${PAGES}`;
  return `The money that did not fit, ${arrived}, ${what}.`;
}

/** Medusa keeps a refund as it was sent, so people hear of what became of it. */
async function noteRefund(shop: Shop, title: string, refund: Refund): Promise<void> {
  const [amount, key] = [refund.amount_display, `${refund.refund_id}-${refund.status}`];
  if (refund.status === "failed") {
    await note(shop, title, key, `The refund of ${amount} failed: you have the money again. Refund it ${PAGES}.`);
  } else if (!refund.metadata?.["medusa_refund"]) {
    await note(shop, title, key, `${amount} went back to the customer without Medusa. The order does not know of it.`);
  }
}

/** Show staff a notification, once. */
export async function note({ container }: Shop, title: string, key: string, description: string): Promise<void> {
  const sent = { to: "", channel: "feed", template: "admin-ui", data: { title, description } };
  try {
    await container.resolve(Modules.NOTIFICATION).createNotifications({ ...sent, idempotency_key: `thaiqr-${key}` });
  } catch {
    // The shop has no such channel.
    container.resolve(ContainerRegistrationKeys.LOGGER).warn(`${title}: ${description}`);
  }
}

/**
 * The methods of the client, in groups such as `client.payments`.
 *
 * Fields have the names of the API. Amounts are integer satang: 150000 is 1,500.00 THB. Every POST has an idempotency
 * key. Give one that names your order, so that a restart of your program does not create it twice. Otherwise each call
 * makes its own, which covers its retries. Times in answers are text, as in the JSON.
 */

import { NotPaidError, UnexpectedResponseError } from "./errors.js";
import type { Answer, Body, Filters, Item, Operation, Query } from "./operations.js";
import { byCursor, byNextAfter, byOffset, bySequence, Pages, type Next } from "./pages.js";
import { sleep, type Call, type PostOptions, type RequestOptions, type Transport } from "./transport.js";
import { unwrap, type EventType, type WebhookEvent } from "./webhooks.js";

const PAGE_SIZE = 100;
/** The pauses of `waitUntilPaid`, in milliseconds. */
const [FIRST_POLL, LONGEST_POLL, POLL_GROWTH] = [1_000, 5_000, 1.5];

/** Options of `waitUntilPaid`. */
export interface WaitOptions extends RequestOptions {
  /** How long to wait at most. Default: 900. */
  seconds?: number;
}

/** An event of the feed, and its place in it. Null only while older events wait for theirs. */
export type FeedEvent = WebhookEvent & { sequence: number | null };

/** A group of methods. */
abstract class Resource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  protected send<O extends Operation>(operation: O, call: Call): Promise<Answer<O>> {
    return this.#transport.send(operation, call);
  }

  protected pages<O extends Operation, K extends keyof Answer<O> & string>(
    operation: O,
    plural: K,
    next: Next,
    filters: { page_size?: number },
    call: Call,
  ): Pages<Item<O, K>> {
    const { page_size = PAGE_SIZE, ...query } = filters;
    const fetch = (page: object): Promise<unknown> => this.#transport.send(operation, { ...call, query: page });
    return new Pages(plural, { limit: page_size, ...query }, next, fetch);
  }
}

/** `client.qrCodes`: codes that customers scan. */
export class QrCodes extends Resource {
  /** Create a code over `amount` satang, with its pending payment. It expires after 15 minutes. */
  create(body: Body<"create_qr_code">, options: PostOptions = {}): Promise<Answer<"create_qr_code">> {
    return this.send("create_qr_code", { body: withCurrency(body), options });
  }

  /** Read a code. */
  get(qr_code_id: string, options: RequestOptions = {}): Promise<Answer<"get_qr_code">> {
    return this.send("get_qr_code", { ids: { qr_code_id }, options });
  }

  /** End a pending code now. */
  expire(qr_code_id: string, options: PostOptions = {}): Promise<Answer<"expire_qr_code">> {
    return this.send("expire_qr_code", { ids: { qr_code_id }, options });
  }

  /** List codes, the newest first. */
  list(filters: Filters<"list_qr_codes"> = {}, options: RequestOptions = {}): Pages<Item<"list_qr_codes", "qr_codes">> {
    return this.pages("list_qr_codes", "qr_codes", byCursor("qr_code_id"), filters, { options });
  }
}

/** `client.paymentLinks`: pages on which customers pay. */
export class PaymentLinks extends Resource {
  /** Make a page over `amount` satang, or over an amount that the customer chooses within the limits. */
  create(body: Body<"create_payment_link">, options: PostOptions = {}): Promise<Answer<"create_payment_link">> {
    return this.send("create_payment_link", { body: withCurrency(body), options });
  }

  /** Read a link. List its payments by `client.payments.list({ payment_link_id })`. */
  get(payment_link_id: string, options: RequestOptions = {}): Promise<Answer<"get_payment_link">> {
    return this.send("get_payment_link", { ids: { payment_link_id }, options });
  }

  /** End a link. Its open codes can still be paid. */
  deactivate(payment_link_id: string, options: PostOptions = {}): Promise<Answer<"deactivate_payment_link">> {
    return this.send("deactivate_payment_link", { ids: { payment_link_id }, options });
  }

  /** List links, the newest first. */
  list(
    filters: Filters<"list_payment_links"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_payment_links", "payment_links">> {
    return this.pages("list_payment_links", "payment_links", byCursor("payment_link_id"), filters, { options });
  }
}

/** `client.payments`: payments by QR code and card. */
export class Payments extends Resource {
  /** Charge a card by its token. Throws `PaymentError` with the `paymentId` if it is declined. */
  create(body: Body<"create_payment">, options: PostOptions = {}): Promise<Answer<"create_payment">> {
    return this.send("create_payment", { body: withCurrency(body), options });
  }

  /** Read a payment. */
  get(payment_id: string, options: RequestOptions = {}): Promise<Answer<"get_payment">> {
    return this.send("get_payment", { ids: { payment_id }, options });
  }

  /**
   * Read a payment until it is paid: once a second at first, and every five seconds later. Throws `NotPaidError` if
   * it ends otherwise, or is still pending after `seconds`.
   */
  async waitUntilPaid(payment_id: string, options: WaitOptions = {}): Promise<Answer<"get_payment">> {
    const { seconds = 900, ...request } = options;
    const ends = performance.now() + seconds * 1_000;
    for (let wait = FIRST_POLL; ; wait = Math.min(wait * POLL_GROWTH, LONGEST_POLL)) {
      const payment = await this.get(payment_id, request);
      if (payment.status === "succeeded") return payment;
      const left = ends - performance.now();
      if (payment.status !== "pending" || !(left > 0)) throw new NotPaidError(payment);
      await sleep(Math.min(wait, left), request.signal);
    }
  }

  /** Say that you know who paid a payment whose `hold` is set. */
  liftHold(payment_id: string, options: PostOptions = {}): Promise<Answer<"lift_payment_hold">> {
    return this.send("lift_payment_hold", { ids: { payment_id }, options });
  }

  /** List or search payments, the newest first. */
  list(filters: Filters<"list_payments"> = {}, options: RequestOptions = {}): Pages<Item<"list_payments", "payments">> {
    return this.pages("list_payments", "payments", byCursor("payment_id"), filters, { options });
  }

  /** List all that happened to a payment, the newest first. */
  timeline(
    payment_id: string,
    filters: Filters<"get_payment_timeline"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"get_payment_timeline", "timeline">> {
    return this.pages("get_payment_timeline", "timeline", byOffset, filters, { ids: { payment_id }, options });
  }

  /** Read the signed evidence of a payment. As JSON in a file, `thaiqr verify` says whether it is true. */
  evidence(payment_id: string, options: RequestOptions = {}): Promise<Answer<"get_payment_evidence">> {
    return this.send("get_payment_evidence", { ids: { payment_id }, options });
  }

  /** List money that did not fit this payment. */
  listExceptions(
    payment_id: string,
    filters: Filters<"list_payment_exceptions"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_payment_exceptions", "exceptions">> {
    return this.pages("list_payment_exceptions", "exceptions", byOffset, filters, { ids: { payment_id }, options });
  }

  /** Accept money that did not fit, as the payment of this payment. */
  acceptException(
    payment_id: string,
    exception_id: string,
    body: Body<"accept_payment_exception"> = {},
    options: PostOptions = {},
  ): Promise<Answer<"accept_payment_exception">> {
    return this.send("accept_payment_exception", { ids: { payment_id, exception_id }, body, options });
  }

  /** Return money that did not fit to its payer, or only the `excess` of an over-payment. */
  returnException(
    payment_id: string,
    exception_id: string,
    body: Body<"return_payment_exception"> = {},
    options: PostOptions = {},
  ): Promise<Answer<"return_payment_exception">> {
    return this.send("return_payment_exception", { ids: { payment_id, exception_id }, body, options });
  }
}

/** `client.refunds`: money back to payers. */
export class Refunds extends Resource {
  /** Refund a payment: `amount` satang, or all that remains. It goes to the account that paid. */
  create(body: Body<"create_refund">, options: PostOptions = {}): Promise<Answer<"create_refund">> {
    return this.send("create_refund", { body, options });
  }

  /** Read a refund. */
  get(refund_id: string, options: RequestOptions = {}): Promise<Answer<"get_refund">> {
    return this.send("get_refund", { ids: { refund_id }, options });
  }

  /** List refunds, the newest first. */
  list(filters: Filters<"list_refunds"> = {}, options: RequestOptions = {}): Pages<Item<"list_refunds", "refunds">> {
    return this.pages("list_refunds", "refunds", byCursor("refund_id"), filters, { options });
  }

  /** Name the account of a refund that waits for one. */
  setDestination(
    refund_id: string,
    body: Body<"set_refund_destination">,
    options: PostOptions = {},
  ): Promise<Answer<"set_refund_destination">> {
    return this.send("set_refund_destination", { ids: { refund_id }, body, options });
  }

  /** Cancel a refund that no bank was told about. */
  cancel(refund_id: string, options: PostOptions = {}): Promise<Answer<"cancel_refund">> {
    return this.send("cancel_refund", { ids: { refund_id }, options });
  }

  /** Make a link by which the payer names the account. Read its address by `getClaimLink`. */
  createClaimLink(
    refund_id: string,
    body: Body<"create_claim_link"> = {},
    options: PostOptions = {},
  ): Promise<Answer<"create_claim_link">> {
    return this.send("create_claim_link", { ids: { refund_id }, body, options });
  }

  /** Read the newest claim link of a refund, with its address. */
  getClaimLink(refund_id: string, options: RequestOptions = {}): Promise<Answer<"get_claim_link">> {
    return this.send("get_claim_link", { ids: { refund_id }, options });
  }
}

/** `client.withdrawals`: money from the balance to a bank account. */
export class Withdrawals extends Resource {
  /** Send `amount` satang to an account. `bank_code`: three digits or a short name such as SCB. */
  create(body: Body<"create_withdrawal">, options: PostOptions = {}): Promise<Answer<"create_withdrawal">> {
    return this.send("create_withdrawal", { body: withCurrency(body), options });
  }

  /** Read a withdrawal. */
  get(withdrawal_id: string, options: RequestOptions = {}): Promise<Answer<"get_withdrawal">> {
    return this.send("get_withdrawal", { ids: { withdrawal_id }, options });
  }

  /** List withdrawals, the newest first. */
  list(
    filters: Filters<"list_withdrawals"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_withdrawals", "withdrawals">> {
    return this.pages("list_withdrawals", "withdrawals", byCursor("withdrawal_id"), filters, { options });
  }

  /** Cancel a pending withdrawal. */
  cancel(withdrawal_id: string, options: PostOptions = {}): Promise<Answer<"cancel_withdrawal">> {
    return this.send("cancel_withdrawal", { ids: { withdrawal_id }, options });
  }
}

/** `client.balance`: what is available, and what changed it. */
export class Balance extends Resource {
  /** Read the balance, now or as it was `at` a time. */
  get(query: Query<"retrieve_balance"> = {}, options: RequestOptions = {}): Promise<Answer<"retrieve_balance">> {
    return this.send("retrieve_balance", { query, options });
  }

  /** List what changed the balance, the newest first. */
  transactions(
    filters: Filters<"list_balance_transactions"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_balance_transactions", "balance_transactions">> {
    const next = byCursor("balance_transaction_id");
    return this.pages("list_balance_transactions", "balance_transactions", next, filters, { options });
  }
}

/** `client.settlements`: what acquirers transfer for card payments. */
export class Settlements extends Resource {
  /** Read a settlement. List its payments by `client.payments.list({ settlement_id })`. */
  get(settlement_id: string, options: RequestOptions = {}): Promise<Answer<"get_settlement">> {
    return this.send("get_settlement", { ids: { settlement_id }, options });
  }

  /** List settlements, the newest first. */
  list(
    filters: Filters<"list_settlements"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_settlements", "settlements">> {
    return this.pages("list_settlements", "settlements", byCursor("settlement_id"), filters, { options });
  }
}

/** `client.slips`: what banks say about slips that payers show. */
export class Slips extends Resource {
  /** Check a slip by the text of its mini-QR, or by a `picture` of it. Name the payment that it is shown for. */
  check(
    slip: Body<"check_slip"> & { picture?: Blob },
    options: PostOptions = {},
  ): Promise<Answer<"check_slip">> {
    const { picture, ...body } = slip;
    return this.send("check_slip", { body: picture ? formOf(picture, body) : body, options });
  }
}

function formOf(picture: Blob, fields: object): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value != null) form.set(name, String(value));
  form.set("picture", picture, "slip");
  return form;
}

/** `client.transactions`: the history of payments and refunds. */
export class Transactions extends Resource {
  /** Read a transaction. */
  get(transaction_id: string, options: RequestOptions = {}): Promise<Answer<"get_transaction">> {
    return this.send("get_transaction", { ids: { transaction_id }, options });
  }

  /** List transactions, the newest first. */
  list(
    filters: Filters<"list_transactions"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_transactions", "transactions">> {
    return this.pages("list_transactions", "transactions", byCursor("transaction_id"), filters, { options });
  }
}

/** `client.events`: all events, also those that no webhook received. */
export class Events extends Resource {
  /** Read an event. */
  async get(event_id: string, options: RequestOptions = {}): Promise<FeedEvent> {
    return (await this.send("get_event", { ids: { event_id }, options })) as FeedEvent;
  }

  /** List events, the newest first. */
  list(filters: Filters<"list_events"> = {}, options: RequestOptions = {}): Pages<FeedEvent> {
    return this.#events(byCursor("event_id"), filters, options);
  }

  /**
   * List the events after a number, the oldest first, each once and without gaps.
   *
   * Keep the `sequence` of the last event that you handled, and start there next time.
   */
  follow(
    filters: { after_sequence?: number; event?: EventType; page_size?: number } = {},
    options: RequestOptions = {},
  ): Pages<FeedEvent> {
    return this.#events(bySequence, { after_sequence: 0, ...filters }, options);
  }

  #events(next: Next, filters: { page_size?: number }, options: RequestOptions): Pages<FeedEvent> {
    return this.pages("list_events", "events", next, filters, { options }) as Pages<unknown> as Pages<FeedEvent>;
  }
}

/** `client.destinations`: LINE chats and email addresses that get messages about events. */
export class Destinations extends Resource {
  /** Add a destination. `token` is of your LINE channel. */
  create(body: Body<"create_destination">, options: PostOptions = {}): Promise<Answer<"create_destination">> {
    return this.send("create_destination", { body, options });
  }

  /** Read a destination. */
  get(destination_id: string, options: RequestOptions = {}): Promise<Answer<"get_destination">> {
    return this.send("get_destination", { ids: { destination_id }, options });
  }

  /** List the destinations, the newest first. */
  list(
    filters: Filters<"list_destinations"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_destinations", "destinations">> {
    return this.pages("list_destinations", "destinations", byOffset, filters, { options });
  }

  /** Change a destination. What is not given stays. */
  change(
    destination_id: string,
    body: Body<"change_destination">,
    options: RequestOptions = {},
  ): Promise<Answer<"change_destination">> {
    return this.send("change_destination", { ids: { destination_id }, body, options });
  }

  /** Delete a destination. */
  delete(destination_id: string, options: RequestOptions = {}): Promise<undefined> {
    return this.send("delete_destination", { ids: { destination_id }, options });
  }

  /** Send a test message. */
  test(destination_id: string, options: PostOptions = {}): Promise<Answer<"test_destination">> {
    return this.send("test_destination", { ids: { destination_id }, options });
  }

  /** List what a destination was told of, the newest first. */
  deliveries(
    destination_id: string,
    filters: Filters<"list_destination_deliveries"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_destination_deliveries", "deliveries">> {
    const call = { ids: { destination_id }, options };
    return this.pages("list_destination_deliveries", "deliveries", byCursor("delivery_id"), filters, call);
  }
}

/** `client.webhooks`: endpoints, their secrets and deliveries. `unwrap` verifies what you receive. */
export class Webhooks extends Resource {
  /** Verify a message and read its event. */
  readonly unwrap: typeof unwrap = unwrap;

  /** Register an endpoint. It must answer a test message now. Without a secret one is made. */
  create(body: Body<"create_webhook">, options: PostOptions = {}): Promise<Answer<"create_webhook">> {
    return this.send("create_webhook", { body, options });
  }

  /** Read an endpoint. */
  get(webhook_id: string, options: RequestOptions = {}): Promise<Answer<"get_webhook">> {
    return this.send("get_webhook", { ids: { webhook_id }, options });
  }

  /** List the endpoints, the newest first. */
  list(filters: Filters<"list_webhooks"> = {}, options: RequestOptions = {}): Pages<Item<"list_webhooks", "webhooks">> {
    return this.pages("list_webhooks", "webhooks", byOffset, filters, { options });
  }

  /** Change an endpoint. What is not given stays. */
  change(
    webhook_id: string,
    body: Body<"change_webhook">,
    options: RequestOptions = {},
  ): Promise<Answer<"change_webhook">> {
    return this.send("change_webhook", { ids: { webhook_id }, body, options });
  }

  /** Delete an endpoint. */
  delete(webhook_id: string, options: RequestOptions = {}): Promise<undefined> {
    return this.send("delete_webhook", { ids: { webhook_id }, options });
  }

  /** Read the secret of an endpoint. */
  getSecret(webhook_id: string, options: RequestOptions = {}): Promise<Answer<"get_webhook_secret">> {
    return this.send("get_webhook_secret", { ids: { webhook_id }, options });
  }

  /** Renew the secret. The old one also signs until its 24 hours are over. */
  rotateSecret(
    webhook_id: string,
    body: Body<"rotate_webhook_secret"> = {},
    options: PostOptions = {},
  ): Promise<Answer<"rotate_webhook_secret">> {
    return this.send("rotate_webhook_secret", { ids: { webhook_id }, body, options });
  }

  /** Send a test message. */
  test(webhook_id: string, options: PostOptions = {}): Promise<Answer<"test_webhook">> {
    return this.send("test_webhook", { ids: { webhook_id }, options });
  }

  /** List what was sent to an endpoint, the newest first. */
  deliveries(
    webhook_id: string,
    filters: Filters<"list_webhook_deliveries"> = {},
    options: RequestOptions = {},
  ): Pages<Item<"list_webhook_deliveries", "deliveries">> {
    const call = { ids: { webhook_id }, options };
    return this.pages("list_webhook_deliveries", "deliveries", byCursor("delivery_id"), filters, call);
  }

  /** Send one event again. */
  redeliver(
    webhook_id: string,
    delivery_id: string,
    options: PostOptions = {},
  ): Promise<Answer<"redeliver_webhook_delivery">> {
    return this.send("redeliver_webhook_delivery", { ids: { webhook_id, delivery_id }, options });
  }

  /** Send all events since a time again that the endpoint did not receive. */
  replay(
    webhook_id: string,
    body: Body<"replay_webhook">,
    options: PostOptions = {},
  ): Promise<Answer<"replay_webhook">> {
    return this.send("replay_webhook", { ids: { webhook_id }, body, options });
  }
}

/** `client.banks`: the banks that withdrawals and refunds can name. */
export class Banks extends Resource {
  /** List all banks. */
  async list(options: RequestOptions = {}): Promise<Item<"list_banks", "banks">[]> {
    const { banks } = await this.send("list_banks", { options });
    if (!Array.isArray(banks)) throw new UnexpectedResponseError("The answer is no list of banks.");
    return banks;
  }
}

/** `client.requests`: the log of your own requests of the last 30 days. */
export class Requests extends Resource {
  /** Read a request with its redacted bodies, by the X-Request-Id of its answer. */
  get(request_id: string, options: RequestOptions = {}): Promise<Answer<"get_request">> {
    return this.send("get_request", { ids: { request_id }, options });
  }

  /** List requests, the newest first. */
  list(filters: Filters<"list_requests"> = {}, options: RequestOptions = {}): Pages<Item<"list_requests", "requests">> {
    return this.pages("list_requests", "requests", byNextAfter, filters, { options });
  }
}

/** `client.sandbox`: what test keys can make happen at the simulated bank. */
export class Sandbox extends Resource {
  /** Pay a code as the customer would. */
  pay(body: Body<"pay_at_sandbox_bank">, options: PostOptions = {}): Promise<Answer<"pay_at_sandbox_bank">> {
    return this.send("pay_at_sandbox_bank", { body, options });
  }

  /** Read how far the time of this merchant was advanced. */
  getClock(options: RequestOptions = {}): Promise<Answer<"get_test_clock">> {
    return this.send("get_test_clock", { options });
  }

  /** Bring what waits nearer: expiry, retries, refunds, reports of the bank. */
  advanceClock(body: Body<"advance_test_clock">, options: PostOptions = {}): Promise<Answer<"advance_test_clock">> {
    return this.send("advance_test_clock", { body, options });
  }

  /** Start the clock anew. */
  resetClock(options: RequestOptions = {}): Promise<undefined> {
    return this.send("reset_test_clock", { options });
  }
}

/** The body with its currency, which callers may leave out: there is only THB. */
function withCurrency<T extends { currency?: "THB" | null }>(body: T): T {
  return { ...body, currency: body.currency ?? "THB" };
}

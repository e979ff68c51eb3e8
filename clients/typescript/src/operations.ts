/** The operations of the API: their routes, and the types that the schema gives them. */

import type { operations } from "./schema.js";

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Method and path of each operation that this client has. A test compares them with the OpenAPI document. */
export const ROUTES = {
  create_qr_code: ["POST", "/v1/qr-codes"],
  list_qr_codes: ["GET", "/v1/qr-codes"],
  get_qr_code: ["GET", "/v1/qr-codes/{qr_code_id}"],
  expire_qr_code: ["POST", "/v1/qr-codes/{qr_code_id}/expire"],
  create_payment_link: ["POST", "/v1/payment-links"],
  list_payment_links: ["GET", "/v1/payment-links"],
  get_payment_link: ["GET", "/v1/payment-links/{payment_link_id}"],
  deactivate_payment_link: ["POST", "/v1/payment-links/{payment_link_id}/deactivate"],
  create_payment: ["POST", "/v1/payments"],
  list_payments: ["GET", "/v1/payments"],
  get_payment: ["GET", "/v1/payments/{payment_id}"],
  lift_payment_hold: ["POST", "/v1/payments/{payment_id}/lift-hold"],
  get_payment_timeline: ["GET", "/v1/payments/{payment_id}/timeline"],
  get_payment_evidence: ["GET", "/v1/payments/{payment_id}/evidence"],
  list_payment_exceptions: ["GET", "/v1/payments/{payment_id}/exceptions"],
  accept_payment_exception: ["POST", "/v1/payments/{payment_id}/exceptions/{exception_id}/accept"],
  return_payment_exception: ["POST", "/v1/payments/{payment_id}/exceptions/{exception_id}/return"],
  create_refund: ["POST", "/v1/refunds"],
  list_refunds: ["GET", "/v1/refunds"],
  get_refund: ["GET", "/v1/refunds/{refund_id}"],
  set_refund_destination: ["POST", "/v1/refunds/{refund_id}/destination"],
  cancel_refund: ["POST", "/v1/refunds/{refund_id}/cancel"],
  create_claim_link: ["POST", "/v1/refunds/{refund_id}/claim-link"],
  get_claim_link: ["GET", "/v1/refunds/{refund_id}/claim-link"],
  check_slip: ["POST", "/v1/slips"],
  list_settlements: ["GET", "/v1/settlements"],
  get_settlement: ["GET", "/v1/settlements/{settlement_id}"],
  create_withdrawal: ["POST", "/v1/withdrawals"],
  list_withdrawals: ["GET", "/v1/withdrawals"],
  get_withdrawal: ["GET", "/v1/withdrawals/{withdrawal_id}"],
  cancel_withdrawal: ["POST", "/v1/withdrawals/{withdrawal_id}/cancel"],
  retrieve_balance: ["GET", "/v1/balance"],
  list_balance_transactions: ["GET", "/v1/balance/transactions"],
  list_transactions: ["GET", "/v1/transactions"],
  get_transaction: ["GET", "/v1/transactions/{transaction_id}"],
  list_events: ["GET", "/v1/events"],
  get_event: ["GET", "/v1/events/{event_id}"],
  create_webhook: ["POST", "/v1/webhooks"],
  list_webhooks: ["GET", "/v1/webhooks"],
  get_webhook: ["GET", "/v1/webhooks/{webhook_id}"],
  change_webhook: ["PATCH", "/v1/webhooks/{webhook_id}"],
  delete_webhook: ["DELETE", "/v1/webhooks/{webhook_id}"],
  get_webhook_secret: ["GET", "/v1/webhooks/{webhook_id}/secret"],
  rotate_webhook_secret: ["POST", "/v1/webhooks/{webhook_id}/secret/rotate"],
  test_webhook: ["POST", "/v1/webhooks/{webhook_id}/test"],
  list_webhook_deliveries: ["GET", "/v1/webhooks/{webhook_id}/deliveries"],
  redeliver_webhook_delivery: ["POST", "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"],
  replay_webhook: ["POST", "/v1/webhooks/{webhook_id}/replay"],
  create_destination: ["POST", "/v1/destinations"],
  list_destinations: ["GET", "/v1/destinations"],
  get_destination: ["GET", "/v1/destinations/{destination_id}"],
  change_destination: ["PATCH", "/v1/destinations/{destination_id}"],
  delete_destination: ["DELETE", "/v1/destinations/{destination_id}"],
  test_destination: ["POST", "/v1/destinations/{destination_id}/test"],
  list_destination_deliveries: ["GET", "/v1/destinations/{destination_id}/deliveries"],
  list_banks: ["GET", "/v1/banks"],
  list_requests: ["GET", "/v1/requests"],
  get_request: ["GET", "/v1/requests/{request_id}"],
  pay_at_sandbox_bank: ["POST", "/sandbox/v1/payments"],
  get_test_clock: ["GET", "/sandbox/v1/clock"],
  advance_test_clock: ["POST", "/sandbox/v1/clock"],
  reset_test_clock: ["DELETE", "/sandbox/v1/clock"],
} as const satisfies Partial<Record<keyof operations, readonly [Method, string]>>;

export type Operation = keyof typeof ROUTES;

/** The JSON of a request, an answer or a message. */
export type Json<T> = T extends { content: { "application/json": infer J } } ? J : never;

/** Times may be given as `Date`. As text they are sent unchanged. */
type TimeField = "start_date" | "end_date" | "expires_at" | "at" | "since" | "paid_at" | "report_at";
type Times<T> = { [K in keyof T]: K extends TimeField ? T[K] | Date : T[K] };

/** There is one currency, so it may be left out. */
type WithDefaults<T> = T extends { currency: infer C } ? Omit<T, "currency"> & { currency?: C } : T;

/** The fields of a request. */
export type Body<O extends Operation> = Times<WithDefaults<Json<NonNullable<operations[O]["requestBody"]>>>>;

/** The JSON of an answer; undefined if it has none. */
export type Answer<O extends Operation> = operations[O]["responses"] extends { 200: infer A } ? Json<A> : undefined;

/** The parameters of a query. */
export type Query<O extends Operation> = Times<NonNullable<operations[O]["parameters"]["query"]>>;

/** The pages of a list use these by themselves. `before` reads backwards. */
type Paging = "limit" | "offset" | "before" | "after_sequence";

/** The filters of a list. `page_size` is up to 100, which is the default: fewer requests. */
export type Filters<O extends Operation> = Omit<Query<O>, Paging> & { page_size?: number };

/** The objects of a list. */
export type Item<O extends Operation, K extends keyof Answer<O>> = Answer<O>[K] extends (infer T)[] ? T : never;

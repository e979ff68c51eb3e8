/** Client of Thai QR Payments. The README shows how to start. */

import type { components } from "./schema.js";

export { ThaiQR } from "./client.js";
export * from "./errors.js";
export { Pages, type Page } from "./pages.js";
export type { FeedEvent, WaitOptions } from "./resources.js";
export type { ThaiQROptions } from "./settings.js";
export type { PostOptions, RequestOptions } from "./transport.js";
export { VERSION } from "./version.js";
export type { EventType, WebhookEvent } from "./webhooks.js";
export * as webhooks from "./webhooks.js";

/** The objects of the API by their names in the OpenAPI document. */
export type Schemas = components["schemas"];
export type Payment = Schemas["PaymentObject"];
export type PaymentException = Schemas["PaymentExceptionObject"];
export type PaymentLink = Schemas["PaymentLinkObject"];
export type QrCode = Schemas["QrCodeObject"];
export type Refund = Schemas["RefundObject"];
export type Settlement = Schemas["SettlementObject"];
export type Slip = Schemas["SlipObject"];
export type Withdrawal = Schemas["WithdrawalObject"];

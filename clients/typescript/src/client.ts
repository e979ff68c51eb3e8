/** `ThaiQR`: the client. */

import {
  Balance,
  Banks,
  Destinations,
  Events,
  PaymentLinks,
  Payments,
  QrCodes,
  Refunds,
  Requests,
  Sandbox,
  Settlements,
  Slips,
  Transactions,
  Webhooks,
  Withdrawals,
} from "./resources.js";
import { settingsOf, type ThaiQROptions } from "./settings.js";
import { Transport } from "./transport.js";

/**
 * The API of one service, as one merchant. Its methods throw `ApiError`, `NetworkError` and
 * `UnexpectedResponseError`. Throws TypeError without a key or a URL.
 */
export class ThaiQR {
  readonly balance: Balance;
  readonly banks: Banks;
  readonly destinations: Destinations;
  readonly events: Events;
  readonly paymentLinks: PaymentLinks;
  readonly payments: Payments;
  readonly qrCodes: QrCodes;
  readonly refunds: Refunds;
  readonly requests: Requests;
  readonly sandbox: Sandbox;
  readonly settlements: Settlements;
  readonly slips: Slips;
  readonly transactions: Transactions;
  readonly webhooks: Webhooks;
  readonly withdrawals: Withdrawals;

  constructor(options: ThaiQROptions = {}) {
    const transport = new Transport(settingsOf(options));
    this.balance = new Balance(transport);
    this.banks = new Banks(transport);
    this.destinations = new Destinations(transport);
    this.events = new Events(transport);
    this.paymentLinks = new PaymentLinks(transport);
    this.payments = new Payments(transport);
    this.qrCodes = new QrCodes(transport);
    this.refunds = new Refunds(transport);
    this.requests = new Requests(transport);
    this.sandbox = new Sandbox(transport);
    this.settlements = new Settlements(transport);
    this.slips = new Slips(transport);
    this.transactions = new Transactions(transport);
    this.webhooks = new Webhooks(transport);
    this.withdrawals = new Withdrawals(transport);
  }
}

from datetime import timedelta

from odoo import SUPERUSER_ID, _, api, fields, models
from odoo.addons.payment import utils as payment_utils
from odoo.exceptions import UserError, ValidationError

from ..service import ServiceError, satang


def is_held(payment):
    """Whether money that did not fit waits for a decision, or is on its way back."""
    return any(exception["status"] in ("open", "sending_back") for exception in payment["exceptions"])


class PaymentTransaction(models.Model):
    _inherit = "payment.transaction"

    thai_qr_id = fields.Char("Payment or refund at the service", readonly=True, copy=False, index=True)
    thai_qr_seen = fields.Json("The last state of each thing that was told", readonly=True, copy=False)

    @api.model
    def _thai_qr_database(self):
        """A name for this database. Several with the same references may use one merchant."""
        return self.env["ir.config_parameter"].sudo().get_param("database.uuid")

    def _thai_qr_post(self, path, amount, body):
        """Ask for a code or a refund. The metadata lets its events find this. Raises ServiceError."""
        metadata = {"odoo": self._thai_qr_database(), "reference": self.reference}
        wish = body | {"amount": satang(amount), "metadata": metadata}
        return self.provider_id._thai_qr_send("POST", path, wish)

    def _get_specific_rendering_values(self, processing_values):
        values = super()._get_specific_rendering_values(processing_values)
        if self.provider_code != "thai_qr":
            return values
        provider = self.provider_id
        body = {
            "currency": self.currency_id.name,
            "reference": self.reference[:35],
            "expiry_minutes": provider.thai_qr_minutes,
        }
        try:
            self._thai_qr_end_others()
            code = self._thai_qr_post("/v1/qr-codes", self.amount, body)
        except ServiceError as error:
            text = _("We cannot make a QR code at this moment. Nothing was charged. Try again in a minute.")
            raise ValidationError(provider._thai_qr_advice(error) if error.status == 400 else text) from error
        self.thai_qr_id = self.provider_reference = code["payment_id"]
        language = "th" if (self.partner_lang or self.env.lang or "").startswith("th") else "en"
        parameters = {"return_url": f"{provider.get_base_url()}/payment/status", "lang": language}
        return {"api_url": code["payment_page_url"], "url_params": parameters}

    def _thai_qr_end_others(self):
        """End the codes that the same documents have, so that nobody pays twice. Raises ServiceError."""
        names = [name for name in ("invoice_ids", "sale_order_ids") if name in self._fields]
        for other in self.union(*(self[name].transaction_ids for name in names)) - self:
            is_open = other.thai_qr_id and other.state in ("draft", "pending") and other.operation != "refund"
            if is_open and other.provider_id == self.provider_id:
                try:
                    payment = other._thai_qr_refresh()
                except ServiceError as error:
                    if error.status == 404:  # the key is of another merchant now
                        continue
                    raise
                if payment["status"] == "pending" and not is_held(payment):
                    self.provider_id._thai_qr_send("POST", f"/v1/qr-codes/{payment['qr_code_id']}/expire", {})
                    payment = other._thai_qr_refresh()
                if other.state == "done" or is_held(payment):
                    raise ValidationError(_("Your money arrived. Please do not pay again."))

    def action_thai_qr_refresh(self):
        """Ask the service, by hand."""
        payment_utils.check_rights_on_recordset(self)
        tx = self.sudo()
        try:
            if tx.operation == "refund":
                tx._thai_qr_take_refund(tx.provider_id._thai_qr_send("GET", f"/v1/refunds/{tx.thai_qr_id}"))
            else:
                tx._thai_qr_refresh()
        except ServiceError as error:
            raise UserError(tx.provider_id._thai_qr_advice(error)) from error

    def _thai_qr_refresh(self, payment_id=None):
        """Bring the transaction to what the service says of its payment; return that. Raises ServiceError."""
        payment = self.provider_id._thai_qr_send("GET", f"/v1/payments/{payment_id or self.thai_qr_id}")
        tx = self._thai_qr_alone()
        tx._thai_qr_take(payment)
        tx.env.flush_all()  # at the end of the request, the rights of its public user would not be enough
        return payment

    def _thai_qr_alone(self):
        """The transaction, locked, for staff who read the language of the company.

        If another process changed it meanwhile, PostgreSQL raises an error, and Odoo begins the request anew.
        """
        query = "SELECT 1 FROM payment_transaction WHERE id = %s FOR UPDATE"
        self.env.cr.execute(query, [self.id], log_exceptions=False)
        return self.with_user(SUPERUSER_ID).with_context(lang=self.company_id.partner_id.lang or "en_US")

    def _thai_qr_take(self, payment):
        self._thai_qr_take_status(payment)
        for exception in payment["exceptions"]:
            text = self._thai_qr_exception_text(payment, exception)
            self._thai_qr_note(exception["exception_id"], exception["status"], text)
        if payment["hold"]:
            text = _("Do not ship yet: ask the customer who paid, then lift the hold at the service.")
            self._thai_qr_note(payment["payment_id"], payment["hold"], text)

    def _thai_qr_take_status(self, payment):
        if payment["status"] in ("succeeded", "refunded"):
            self._thai_qr_take_paid(payment)
        elif payment["payment_id"] != self.thai_qr_id or self.state == "done":
            return
        elif is_held(payment):
            self._set_pending(extra_allowed_states=("cancel", "error"))
        elif payment["status"] == "expired" and self.state in ("draft", "pending"):
            self._set_canceled(_("Nobody paid the code before it expired. The customer can pay again."))
        elif payment["status"] == "failed" and self.state in ("draft", "pending"):
            self._set_error(_("The bank of the customer declined the payment. The customer can pay again."))

    def _thai_qr_take_paid(self, payment):
        """The bank has reported the money. The books get what arrived, and the bank's reference of it."""
        shown = {"amount": payment["amount_display"], "id": payment["payment_id"]}
        if self.state == "done":
            if payment["payment_id"] != self.thai_qr_id:
                text = _("The customer paid again: %(amount)s by payment %(id)s. Refund it at the service.")
                self._thai_qr_note(payment["payment_id"], "again", text % shown)
        elif payment["amount"] != satang(self.amount) or payment["currency"] != self.currency_id.name:
            text = _(
                "%(amount)s were paid by payment %(id)s, but this transaction has another amount. Register "
                "it by hand, or refund it at the service."
            )
            self._thai_qr_note(payment["payment_id"], "amount", text % shown)
            self._set_error(text % shown)
        else:
            self.thai_qr_id = payment["payment_id"]
            self.provider_reference = payment["bank_reference"] or payment["payment_id"]
            self.amount = (payment["amount_received"] or payment["amount"]) / 100
            self._set_done(extra_allowed_states=("cancel",))
            self._thai_qr_post_soon()

    def _thai_qr_post_soon(self):
        """Have Odoo post the payment and confirm the order now; once more if a message came in between."""
        now = fields.Datetime.now()
        self.env.ref("payment.cron_post_process_payment_tx")._trigger([now, now + timedelta(minutes=1)])

    def _thai_qr_note(self, thing, state, text):
        """Tell the staff of the shop, once for each state."""
        seen = self.thai_qr_seen or {}
        if seen.get(thing) != state:
            self.write({"thai_qr_seen": seen | {thing: state}, "state_message": text})
            self._log_message_on_linked_documents(text)
            if self.payment_id:
                self.payment_id.message_post(body=text)

    def _thai_qr_exception_text(self, payment, exception):
        """What happened to money that did not fit, and what the staff of the shop do now."""
        much = _("Paid too much: %(amount)s arrived instead of %(asked)s.")
        little = _("Paid too little: %(amount)s arrived instead of %(asked)s.")
        opened = {
            "amount_mismatch": much if exception["amount"] > payment["amount"] else little,
            "duplicate": _("Paid twice: %(amount)s arrived once more."),
            "late": _("Paid late: %(amount)s arrived after the code had expired."),
            "time_mismatch": _("Wrong time: the bank says that %(amount)s came before the code existed."),
        }
        decide = _("Accept or return it at the service (Exceptions). Ship nothing before.")
        returns = _("Return it at the service (Exceptions).")
        went_back = _("The money that did not fit (%(amount)s) went back to the customer.")
        is_of_another = _("The money that did not fit (%(amount)s) belongs to another payment.")
        decided = {
            "accepted": _("The money that did not fit (%(amount)s) was accepted."),
            "sent_back": went_back,
            "taken_back": went_back,
            "attached": is_of_another,
            "merged": is_of_another,
        }
        other = _("The money that did not fit (%(amount)s) is not settled: see Exceptions at the service.")
        text = decided.get(exception["status"], other)
        if exception["status"] == "open":
            is_twice = exception["reason"] == "duplicate"
            text = f"{opened[exception['reason']]} {returns if is_twice else decide}"
        return text % {"amount": exception["amount_display"], "asked": payment["amount_display"]}

    def _send_refund_request(self, amount_to_refund=None):
        if self.provider_code == "thai_qr":
            # A message about this refund waits until it is stored here, and is then applied anew.
            self.env.cr.execute("UPDATE payment_transaction SET id = id WHERE id = %s", [self.id])
        refund = super()._send_refund_request(amount_to_refund=amount_to_refund)
        if self.provider_code == "thai_qr":
            try:
                refund.sudo()._thai_qr_send_refund()
            except ServiceError as error:
                raise UserError(self.provider_id._thai_qr_advice(error)) from error
        return refund

    def _thai_qr_send_refund(self):
        """Send this refund. If no answer comes, it is sent again. Raises ServiceError if it is refused."""
        body = {"payment_id": self.source_transaction_id.thai_qr_id, "reason": "requested_by_customer"}
        try:
            sent = self._thai_qr_post("/v1/refunds", -self.amount, body)
        except ServiceError as error:
            if not error.is_open:
                raise
            if self.state == "draft":
                self._set_pending(_("The service does not answer. The refund is sent again, and done once."))
        else:
            self._thai_qr_take_refund(sent)

    def _thai_qr_send_refund_again(self):
        """Look for the refund at the service, and send it if it is not there. Raises ServiceError."""
        path = f"/v1/refunds?limit=100&payment_id={self.source_transaction_id.thai_qr_id}"
        for sent in self.provider_id._thai_qr_send("GET", path)["refunds"]:
            if self.provider_id._thai_qr_transaction(sent) == self:
                self._thai_qr_take_refund(sent)
                return
        try:
            self._thai_qr_send_refund()
        except ServiceError as error:
            self._set_error(self.provider_id._thai_qr_advice(error))

    def _thai_qr_apply_refund(self, refund):
        """Take a refund of this payment. One that Odoo did not ask for is added. Raises ServiceError."""
        if self.state != "done":
            self._thai_qr_refresh()
        source = self._thai_qr_alone()
        known = source.child_transaction_ids.filtered(lambda tx: tx.thai_qr_id == refund["refund_id"])
        asked = source.provider_id._thai_qr_transaction(refund).filtered(lambda tx: not tx.thai_qr_id)
        child = known or asked or source._create_child_transaction(refund["amount"] / 100, is_refund=True)
        child._thai_qr_take_refund(refund)

    def _thai_qr_take_refund(self, refund):
        """Bring this refund to what the service says of it."""
        shown = {"amount": refund["amount_display"], "id": refund["refund_id"]}
        self.thai_qr_id = self.provider_reference = refund["refund_id"]
        waits_for = "approval" if refund["awaiting_approval"] else refund["pending_reason"]
        if refund["status"] == "completed":
            self._set_done()
            self._thai_qr_post_soon()
        elif refund["status"] == "failed":
            text = _(
                "Refund %(id)s failed: %(amount)s are yours again. Refund again, or ask for another account."
            )
            self._set_error(text % shown)
        elif refund["status"] == "canceled":
            self._set_canceled(_("Refund %(id)s of %(amount)s was cancelled.") % shown)
        elif waits_for == "processing":
            self._set_pending(_("Refund %(id)s: %(amount)s are on their way to the customer.") % shown)
        else:
            text = _("Refund %(id)s of %(amount)s waits until a second person at the service approves it.")
            if waits_for == "awaiting_destination":
                text = _(
                    "Refund %(id)s of %(amount)s waits: the bank did not say which account the customer paid "
                    "from. Name it at the service."
                )
            self._thai_qr_note(refund["refund_id"], waits_for, text % shown)
            self._set_pending(text % shown)

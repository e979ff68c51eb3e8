import base64
import logging
import re
import secrets

import psycopg2
from odoo import _, api, fields, models
from odoo.exceptions import UserError, ValidationError

from .. import service
from ..service import ServiceError

PAYMENT_EVENTS = ["payment.succeeded", "payment.failed", "payment.exception", "payment.exception_resolved"]
REFUND_EVENTS = ["refund.completed", "refund.failed"]
PAGE = 100
PAGES = 10
# An event that fails as often as this is left out. Others wait behind it until then.
MOST_FAILURES = 10

_logger = logging.getLogger(__name__)


class PaymentProvider(models.Model):
    _inherit = "payment.provider"

    code = fields.Selection(selection_add=[("thai_qr", "Thai QR code")], ondelete={"thai_qr": "set default"})
    thai_qr_address = fields.Char(
        "Address of the service", help="Such as https://pay.example.com", required_if_provider="thai_qr"
    )
    thai_qr_key = fields.Char(
        "Secret key",
        help="With the scopes payments:write, payments:read, refunds:write and webhooks:write.",
        required_if_provider="thai_qr",
        groups="base.group_system",
        copy=False,
    )
    thai_qr_secret = fields.Char(
        "Secret of the webhook",
        help="The button registers the webhook and fills this in.",
        groups="base.group_system",
        copy=False,
    )
    thai_qr_minutes = fields.Integer("Minutes to pay", default=15)
    thai_qr_sequence = fields.Integer("Last event that was applied", copy=False)
    thai_qr_failures = fields.Integer("Failures of the next event", copy=False)

    @api.constrains("thai_qr_address", "thai_qr_key", "thai_qr_minutes", "state")
    def _check_thai_qr(self):
        for provider in self.sudo().filtered(lambda each: each.code == "thai_qr" and each.thai_qr_address):
            # The key travels to this address.
            pattern = r"(https://[a-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:\d{1,5})?"
            if not re.fullmatch(pattern, provider.thai_qr_address, re.IGNORECASE):
                raise ValidationError(_("The address of the service begins with https:// and has no path."))
            if not 1 <= provider.thai_qr_minutes <= 1440:
                raise ValidationError(_("A code can be paid for 1 to 1440 minutes."))
            is_test_key = (provider.thai_qr_key or "").startswith("tq_test_")
            if provider.state == "enabled" and is_test_key:
                raise ValidationError(_("With a test key no real money moves: choose the state Test Mode."))

    def _compute_feature_support_fields(self):
        super()._compute_feature_support_fields()
        self.filtered(lambda provider: provider.code == "thai_qr").support_refund = "partial"

    def _get_supported_currencies(self):
        currencies = super()._get_supported_currencies()
        return currencies.filtered(lambda each: each.name == "THB") if self.code == "thai_qr" else currencies

    def _get_default_payment_method_codes(self):
        return {"thai_qr"} if self.code == "thai_qr" else super()._get_default_payment_method_codes()

    def _thai_qr_send(self, method, path, body=None):
        """Raises ServiceError."""
        provider = self.sudo()
        return service.send(provider.thai_qr_address, provider.thai_qr_key, method, path, body)

    def _thai_qr_advice(self, error):
        """What the staff of the shop can do about an error."""
        if error.is_open:
            return _("The payment service does not answer. Try again later, or ask its operator.")
        if error.status == 401:
            return _("The payment service refuses the key. Enter a valid key in the settings.")
        if error.code == "insufficient_scope":
            return _(
                "The key may not do this. Ask for a key with the scopes payments:write, payments:read, "
                "refunds:write and webhooks:write."
            )
        return _("The payment service refused: %s", error)

    def action_thai_qr_connect(self):
        """Test address and key, register the webhook anew with a new secret, and say what works."""
        self.ensure_one()
        url = f"{self.get_base_url()}/payment/thai_qr/webhook/{self.id}"
        try:
            hooks = self._thai_qr_send("GET", "/v1/webhooks?limit=100")["webhooks"]
            self._thai_qr_begin()
        except ServiceError as error:
            raise UserError(self._thai_qr_advice(error)) from error
        kind, text = "warning", _("The webhook is registered, but no message arrived yet.")
        try:
            for hook in hooks:
                if hook["url"] == url:
                    self._thai_qr_send("DELETE", f"/v1/webhooks/{hook['webhook_id']}")
            self.thai_qr_secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
            self.env.cr.commit()  # the service sends a message before it answers, to another process of Odoo
            made = {"url": url, "events": PAYMENT_EVENTS + REFUND_EVENTS, "secret": self.thai_qr_secret}
            if self._thai_qr_send("POST", "/v1/webhooks", made)["verification"] == "verified":
                kind, text = "success", _("The webhook works: a signed message arrived.")
        except ServiceError as error:
            text = self._thai_qr_advice(error)
        if kind == "warning":
            text += " " + _("Without webhooks orders are paid too, up to two minutes later.")
        shown = {"title": _("Address and key are right."), "message": text, "type": kind, "sticky": True}
        return {"type": "ir.actions.client", "tag": "display_notification", "params": shown}

    def _thai_qr_begin(self):
        """Begin the events at their end, also if the key is of another merchant now."""
        events = self._thai_qr_send("GET", "/v1/events?limit=1")["events"]
        last = events[0]["sequence"] if events else 0  # None while it waits for its place
        if last is not None and not 0 < self.thai_qr_sequence <= last:
            self.thai_qr_sequence = last

    @api.model
    def _thai_qr_cron(self):
        """Each minute: send what had no answer, and read the events that no webhook told."""
        for provider in self.search([("code", "=", "thai_qr"), ("state", "!=", "disabled")]):
            try:
                provider._thai_qr_send_refunds()
                pages = 0
                while provider._thai_qr_read_page() and pages < PAGES:
                    pages += 1
            except (ServiceError, psycopg2.OperationalError) as error:
                self.env.cr.rollback()  # It begins at the same place a minute later.
                _logger.warning("Provider %d: events are not read: %s", provider.id, type(error).__name__)

    def _thai_qr_send_refunds(self):
        """Send the refunds whose answer is missing."""
        unanswered = [
            ("provider_id", "=", self.id),
            ("operation", "=", "refund"),
            ("state", "=", "pending"),
            ("thai_qr_id", "=", False),
        ]
        for refund in self.env["payment.transaction"].search(unanswered):
            refund._thai_qr_send_refund_again()
            self.env.cr.commit()

    def _thai_qr_read_page(self):
        """Apply a page of events, and keep the place after each. Returns whether more may follow."""
        path = f"/v1/events?after_sequence={self.thai_qr_sequence}&limit={PAGE}"
        events = self._thai_qr_send("GET", path)["events"]
        for event in events:
            if event["sequence"] is None:
                return False
            try:
                self._thai_qr_apply(event)
                self.env.flush_all()
            except (ServiceError, psycopg2.OperationalError):
                raise
            except Exception:
                self.env.cr.rollback()
                self.thai_qr_failures += 1
                is_left_out = self.thai_qr_failures >= MOST_FAILURES
                _logger.exception("Event %s fails%s", event["event_id"], ", left out" * is_left_out)
                if not is_left_out:
                    self.env.cr.commit()
                    return False
            self.write({"thai_qr_sequence": event["sequence"], "thai_qr_failures": 0})
            self.env.cr.commit()
        return len(events) == PAGE

    def _thai_qr_apply(self, event):
        """Bring the transaction of an event to what the service says now. To do this twice changes nothing.

        Of several events of a payment the newest counts, so the payment is read. Raises ServiceError.
        """
        data = event["data"]
        if event["event"] in PAYMENT_EVENTS and (tx := self._thai_qr_transaction(data)):
            tx._thai_qr_refresh(data["payment_id"])
        elif event["event"] in REFUND_EVENTS:
            payment = [("provider_id", "=", self.id), ("thai_qr_id", "=", data["payment_id"])]
            if tx := self.env["payment.transaction"].search(payment):
                tx._thai_qr_apply_refund(self._thai_qr_send("GET", f"/v1/refunds/{data['refund_id']}"))

    def _thai_qr_transaction(self, thing):
        """The transaction that a payment or refund was made for, also if its answer was lost."""
        metadata = thing["metadata"] or {}
        transactions = self.env["payment.transaction"]
        if metadata.get("odoo") != transactions._thai_qr_database():
            return transactions
        return transactions.search(
            [("provider_id", "=", self.id), ("reference", "=", metadata.get("reference"))]
        )

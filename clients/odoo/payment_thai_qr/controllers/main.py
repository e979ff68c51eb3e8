import json
from contextlib import suppress

from odoo import SUPERUSER_ID, http
from odoo.addons.payment.controllers.post_processing import PaymentPostProcessing
from odoo.http import request

from ..service import ServiceError, is_genuine


class ThaiQrController(PaymentPostProcessing):
    @http.route(
        "/payment/thai_qr/webhook/<int:provider_id>",
        type="http",
        auth="public",
        methods=["POST"],
        csrf=False,
        save_session=False,
    )
    def thai_qr_webhook(self, provider_id):
        """Take a message. What cannot be applied now is refused with 503, so that it comes again."""
        body = request.httprequest.get_data()
        providers = request.env["payment.provider"].with_user(SUPERUSER_ID)
        provider = providers.search([("id", "=", provider_id), ("code", "=", "thai_qr")])
        if not is_genuine(provider.thai_qr_secret, request.httprequest.headers, body):
            return request.make_response("", status=400)
        try:
            provider._thai_qr_apply(json.loads(body))
        except ServiceError:
            return request.make_response("", status=503)
        return request.make_response("")

    @http.route()
    def poll_status(self, **kwargs):
        """While the customer waits at the page of Odoo, the service is asked."""
        tx_id = request.session.get(self.MONITORED_TX_ID_KEY)
        tx = request.env["payment.transaction"].sudo().browse(tx_id).exists()
        if tx.provider_code == "thai_qr" and tx.thai_qr_id and tx.state in ("draft", "pending"):
            with suppress(ServiceError):  # a webhook or the events tell later
                tx._thai_qr_refresh()
        return super().poll_status(**kwargs)

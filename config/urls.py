"""The URLs of the API as one table, in the order of the interface. Each row has both path forms."""

from typing import Any

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from apidocs import views
from apidocs.guide import views as guide
from core.http import api
from links import page as link_page
from links.views import PaymentLinkViewSet
from operations.evidence.views import EvidenceViewSet
from operations.metrics import health, view as metrics
from operations.proof import page as proof_page
from payments import card_responses
from payments.views import PaymentViewSet
from qrcodes import payment_page, views as qr_codes
from reconciliation.claims import page as claim_page
from reconciliation.endpoint.views import NotificationViewSet
from reconciliation.exceptions.views import PaymentDetailViewSet, PaymentExceptionViewSet
from reconciliation.slips.views import SlipViewSet
from refunds.views import RefundViewSet
from request_log.views import RequestViewSet
from sandbox.bank_api import OwnStatementViewSet, SignedViewSet
from sandbox.views import BankHomePage, BankPaymentPage, CardAuthorizationPage, SandboxPaymentViewSet
from settlements.views import SettlementViewSet
from testclock.views import ClockViewSet
from timeline.views import TimelineViewSet
from transactions.views import BalanceTransactionViewSet, BalanceViewSet, TransactionViewSet
from webhooks.views import DeliveryViewSet, DestinationViewSet, EventViewSet, WebhookViewSet
from withdrawals.views import BankViewSet, WithdrawalViewSet

THAI_PREFIX, PLAIN_PREFIX = "Thai/v1/", "v1/"

EXCEPTION = "payments/<str:payment_id>/exceptions/<str:exception_id>"
LINK = "payment-links/<str:payment_link_id>"
REFUND, WEBHOOK = "refunds/<str:refund_id>", "webhooks/<str:webhook_id>"
DESTINATION = "destinations/<str:destination_id>"
NOTIFICATIONS = "banks/<str:bank>/notifications"
CHANGE_WEBHOOK = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
# path, viewset, method to action
API_ROUTES: list[tuple[str, Any, dict[str, str]]] = [
    ("qr-codes", qr_codes.QrCodeViewSet, {"get": "list", "post": "create"}),
    ("qr-codes/<str:qr_code_id>", qr_codes.QrCodeViewSet, {"get": "retrieve"}),
    ("qr-codes/<str:qr_code_id>/card", qr_codes.QrCodeViewSet, {"get": "card"}),
    ("qr-codes/<str:qr_code_id>/expire", qr_codes.QrCodeViewSet, {"post": "expire"}),
    ("payment-links", PaymentLinkViewSet, {"get": "list", "post": "create"}),
    (LINK, PaymentLinkViewSet, {"get": "retrieve"}),
    (f"{LINK}/picture", PaymentLinkViewSet, {"get": "picture"}),
    (f"{LINK}/deactivate", PaymentLinkViewSet, {"post": "deactivate"}),
    ("payments", PaymentViewSet, {"get": "list", "post": "create"}),
    ("payments/<str:payment_id>", PaymentDetailViewSet, {"get": "retrieve"}),
    ("payments/<str:payment_id>/lift-hold", PaymentViewSet, {"post": "lift_hold"}),
    ("payments/<str:payment_id>/timeline", TimelineViewSet, {"get": "list"}),
    ("payments/<str:payment_id>/evidence", EvidenceViewSet, {"get": "retrieve"}),
    ("payments/<str:payment_id>/exceptions", PaymentExceptionViewSet, {"get": "list"}),
    (f"{EXCEPTION}/accept", PaymentExceptionViewSet, {"post": "accept"}),
    (f"{EXCEPTION}/return", PaymentExceptionViewSet, {"post": "send_back"}),
    ("refunds", RefundViewSet, {"get": "list", "post": "create"}),
    (REFUND, RefundViewSet, {"get": "retrieve"}),
    (f"{REFUND}/destination", RefundViewSet, {"post": "destination"}),
    (f"{REFUND}/claim-link", RefundViewSet, {"get": "claim_link", "post": "create_claim_link"}),
    (f"{REFUND}/cancel", RefundViewSet, {"post": "cancel"}),
    ("webhooks", WebhookViewSet, {"get": "list", "post": "create"}),
    (WEBHOOK, WebhookViewSet, CHANGE_WEBHOOK),
    (f"{WEBHOOK}/secret", WebhookViewSet, {"get": "secret"}),
    (f"{WEBHOOK}/secret/rotate", WebhookViewSet, {"post": "rotate_secret"}),
    (f"{WEBHOOK}/test", DeliveryViewSet, {"post": "test"}),
    (f"{WEBHOOK}/deliveries", DeliveryViewSet, {"get": "list"}),
    (f"{WEBHOOK}/deliveries/<str:delivery_id>/redeliver", DeliveryViewSet, {"post": "redeliver"}),
    (f"{WEBHOOK}/replay", DeliveryViewSet, {"post": "replay"}),
    ("destinations", DestinationViewSet, {"get": "list", "post": "create"}),
    (DESTINATION, DestinationViewSet, CHANGE_WEBHOOK),
    (f"{DESTINATION}/test", DestinationViewSet, {"post": "test"}),
    (f"{DESTINATION}/deliveries", DestinationViewSet, {"get": "deliveries"}),
    ("events", EventViewSet, {"get": "list"}),
    ("events/<str:event_id>", EventViewSet, {"get": "retrieve"}),
    ("transactions", TransactionViewSet, {"get": "list"}),
    ("transactions/<str:transaction_id>", TransactionViewSet, {"get": "retrieve"}),
    ("balance", BalanceViewSet, {"get": "retrieve"}),
    ("balance/transactions", BalanceTransactionViewSet, {"get": "list"}),
    ("slips", SlipViewSet, {"post": "create"}),
    ("settlements", SettlementViewSet, {"get": "list"}),
    ("settlements/<str:settlement_id>", SettlementViewSet, {"get": "retrieve"}),
    ("withdrawals", WithdrawalViewSet, {"get": "list", "post": "create"}),
    ("withdrawals/<str:withdrawal_id>", WithdrawalViewSet, {"get": "retrieve"}),
    ("withdrawals/<str:withdrawal_id>/cancel", WithdrawalViewSet, {"post": "cancel"}),
    ("banks", BankViewSet, {"get": "list"}),
    ("requests", RequestViewSet, {"get": "list"}),
    ("requests/<str:request_id>", RequestViewSet, {"get": "retrieve"}),
]
CLOCK: dict[str, Any] = {"get": "retrieve", "post": "advance", "delete": "reset"}


urlpatterns = [
    *(
        path(prefix + tail, viewset.as_view(actions))
        for prefix in (THAI_PREFIX, PLAIN_PREFIX)
        for tail, viewset, actions in API_ROUTES
    ),
    # The interface shows these two without a version as well.
    path("Thai/qr-codes", qr_codes.QrCodeViewSet.as_view({"post": "create"})),
    *(
        path(f"{form}qr-codes/<str:qr_code_id>/image", qr_codes.image, name="qr-code-image")
        for form in ("Thai/", THAI_PREFIX, PLAIN_PREFIX)
    ),
    # For banks, the sandbox bank, staff and monitoring.
    path(NOTIFICATIONS, NotificationViewSet.as_view({"post": "create"})),
    path(f"{NOTIFICATIONS}/<str:secret>", NotificationViewSet.as_view({"post": "create_for_merchant"})),
    path("sandbox/v1/payments", SandboxPaymentViewSet.as_view({"post": "create"})),
    path("sandbox/v1/statements/<str:date>", OwnStatementViewSet.as_view({"get": "retrieve"})),
    path("sandbox/v1/clock", ClockViewSet.as_view(CLOCK)),
    path("sandbox/bank/v1/orders", SignedViewSet.as_view({"post": "order"})),
    path("sandbox/bank/v1/orders/<str:reference>", SignedViewSet.as_view({"get": "inquire"})),
    path("sandbox/bank/v1/transactions", SignedViewSet.as_view({"get": "transactions"})),
    path("sandbox/bank/v1/slips", SignedViewSet.as_view({"get": "slip"})),
    path("sandbox/bank/statement", SignedViewSet.as_view({"get": "statement"})),
    path("sandbox/bank", BankHomePage.as_view(), name="sandbox-bank"),
    path("sandbox/bank/payments/<str:payment_id>", BankPaymentPage.as_view(), name="sandbox-bank-payment"),
    path("sandbox/bank/cards/<str:charge_id>", CardAuthorizationPage.as_view(), name="sandbox-bank-card"),
    path("pay/cards/<str:payment_id>", card_responses.return_page),
    path("pay/links/<str:payment_link_id>", link_page.page, name="payment-link-page"),
    path("pay/<str:qr_code_id>", payment_page.page, name="payment-page"),
    path("pay/<str:qr_code_id>/state", payment_page.state, name="payment-page-state"),
    path("pay/logos/<str:version>.png", payment_page.logo, name="payment-page-logo"),
    path("pay/<str:qr_code_id>/new-code", payment_page.renew, name="payment-page-renewal"),
    path("pay/<str:qr_code_id>/receipt.png", payment_page.receipt, name="payment-page-receipt"),
    path("pay/<str:qr_code_id>/card.png", payment_page.card, name="payment-page-card"),
    path("proof/<str:merchant_id>.json", proof_page.document, name="proof-document"),
    path("proof/<str:merchant_id>", proof_page.page, name="proof-page"),
    path("claim/<str:token>", claim_page.page, name="claim-page"),
    path("admin", RedirectView.as_view(url="/admin/")),
    path("shop", RedirectView.as_view(url="/shop/")),
    # Django's "view on site" would query the database, and no object here has such a page.
    re_path("^admin/r/", api.not_found),
    path("admin/", include("console.people.urls")),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("openapi.json", views.openapi),
    path("openapi.yaml", views.openapi_yaml),
    path("postman.json", views.postman),
    path("llms.txt", views.llms),
    path("docs", views.page),
    path("docs/try", views.trial_page),
    path("docs/samples.json", views.code_samples),
    path("guide", guide.guide, name="guide"),
    path("guide/", guide.with_slash),
    path("guide/search.json", guide.search),
    path("guide/<path:name>", guide.guide),
    path("", views.start),
]
handler429 = "console.people.page_limits.too_many_requests"
handler400 = "core.http.api.bad_request"
handler404 = "core.http.api.not_found"
handler500 = "console.people.page_limits.server_error"

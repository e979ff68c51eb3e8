from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin

from approvals.models import Approval, PayoutAccount, PayoutPolicy
from console.approvals.approval_admin import ApprovalAdmin
from console.approvals.payout_admin import PayoutAccountAdmin, PayoutPolicyAdmin
from console.merchants.merchant_page import MerchantPageAdmin
from console.payments.outgoing_pages import (
    BankTransactionPageAdmin,
    OrderPageAdmin,
    RefundPageAdmin,
    WithdrawalPageAdmin,
)
from console.payments.payment_page import PaymentPageAdmin
from console.people import staff_admin  # noqa: F401 (registers staff and roles)
from console.settlements.pages import QuestionPageAdmin, SettlementPageAdmin, TransferPageAdmin
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.models import BankTransaction
from refunds.models import Refund
from settlements.models import AcquirerTransfer, OpenQuestion, Settlement
from transfers.models import Transfer
from withdrawals.models import Withdrawal

admin.site.register(AcquirerTransfer, TransferPageAdmin)
admin.site.register(Approval, ApprovalAdmin)
admin.site.register(BankTransaction, BankTransactionPageAdmin)
admin.site.register(Merchant, MerchantPageAdmin)
admin.site.register(OpenQuestion, QuestionPageAdmin)
admin.site.register(Payment, PaymentPageAdmin)
admin.site.register(PayoutAccount, PayoutAccountAdmin)
admin.site.register(PayoutPolicy, PayoutPolicyAdmin)
admin.site.register(Refund, RefundPageAdmin)
admin.site.register(Settlement, SettlementPageAdmin)
admin.site.register(Transfer, OrderPageAdmin)
admin.site.register(Withdrawal, WithdrawalPageAdmin)

# Internals of allauth, with secrets.
for model in (EmailAddress, Authenticator, UserSession, SocialAccount, SocialApp, SocialToken):
    admin.site.unregister(model)

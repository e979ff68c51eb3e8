from core.errors import PaymentError


class InsufficientFunds(PaymentError):
    code = "insufficient_funds"
    message = "The balance does not cover this amount."

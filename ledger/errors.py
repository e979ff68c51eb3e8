from core.errors import PaymentError

InsufficientFunds = PaymentError.of("insufficient_funds", "The balance does not cover this amount.")

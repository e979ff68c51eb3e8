from . import payment_provider, payment_transaction

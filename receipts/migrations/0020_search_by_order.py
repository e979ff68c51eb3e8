"""What waits is found by the merchant's own reference too: that is what a merchant says who calls."""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("receipts.migrations.0018_list_exceptions")
AGAIN = "CREATE OR REPLACE FUNCTION receipts_list(subject text)"
FUNCTION_BEFORE = (
    AGAIN + BEFORE.LIST.partition("FUNCTION receipts_list(subject text)")[2].partition("END $$;")[0]
)
WORDS = "upper(concat_ws(' ', id, payment_id, reference1, bank_transaction_id))"
MORE = (
    "upper(concat_ws(' ', id, payment_id, reference1, bank_transaction_id,\n"
    "            (SELECT reference FROM payments_payment WHERE id = receipts_open.payment_id)))"
)
FUNCTION = FUNCTION_BEFORE.replace(WORDS, MORE)
FILL = """
UPDATE receipts_waiting AS waiting SET words = concat_ws(' ', words, upper(payment.reference))
FROM payments_payment AS payment WHERE payment.id = waiting.payment_id AND payment.reference <> '';
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0019_reopen")]
    operations = [
        migrations.RunSQL(f"{FUNCTION}END $$;\n{FILL}", f"{FUNCTION_BEFORE}END $$;"),
    ]

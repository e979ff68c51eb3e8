"""What a bank did not say at first may be told by another message of the same money; what it said stays."""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("receipts.migrations.0006_guard_exceptions")
MOVES_BEFORE = import_module("receipts.migrations.0011_guard_more")
WORD = BEFORE.GUARD.partition("END $$;")[0] + "END $$;"
MOVES = MOVES_BEFORE.GUARD.partition("END $$;")[0] + "END $$;"
END = "    RETURN NEW;\nEND $$;"
LEARN = """
    IF current_setting('qr.resealing', true) IS DISTINCT FROM 'on' AND (
        OLD.payer_name NOT IN ('', NEW.payer_name)
        OR OLD.payer_bank_code NOT IN ('', NEW.payer_bank_code)
        OR OLD.payer_account_sealed NOT IN ('', NEW.payer_account_sealed)
        OR OLD.slip_reference NOT IN ('', NEW.slip_reference)
    ) THEN
        RAISE EXCEPTION 'the word of a bank is kept as it was said' USING ERRCODE = 'insufficient_privilege';
    END IF;
"""
LEARNT = "payer_name,payer_bank_code,payer_account_sealed,slip_reference"
GUARD = "\n".join(
    [
        WORD.replace(",also_known_as}'", ",also_known_as,'\n                || '" + LEARNT + "}'"),
        MOVES.replace(END, LEARN.lstrip("\n") + END),
    ]
)


class Migration(migrations.Migration):
    dependencies = [("receipts", "0013_rests")]
    operations = [migrations.RunSQL(GUARD, f"{WORD}\n{MOVES}")]

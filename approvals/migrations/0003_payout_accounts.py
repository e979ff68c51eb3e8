"""The accounts that a merchant's money may go to. One that was removed stays as a record."""

import core.columns
import django.db.models.deletion
from django.db import migrations, models


GUARD = """
CREATE FUNCTION approvals_guard_account() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free text[] := '{removed_by,removed_at}';
BEGIN
    IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
        RAISE EXCEPTION 'an account is removed, and its record stays' USING ERRCODE = 'insufficient_privilege';
    END IF;
    -- `manage.py reseal` seals it with another key
    IF current_setting('qr.resealing', true) = 'on' THEN
        free := '{account_sealed,account_fingerprint}';
    ELSIF OLD.removed_at IS NOT NULL THEN
        RAISE EXCEPTION 'an account that was removed stays removed' USING ERRCODE = 'check_violation';
    END IF;
    IF (to_jsonb(NEW) - free) IS DISTINCT FROM (to_jsonb(OLD) - free) THEN
        RAISE EXCEPTION 'an account on the list never changes' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_guard_account BEFORE UPDATE OR DELETE ON approvals_payoutaccount
    FOR EACH ROW EXECUTE FUNCTION approvals_guard_account();
CREATE TRIGGER approvals_kept_account BEFORE TRUNCATE ON approvals_payoutaccount
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_guard_account();
"""
UNGUARD = """
DROP TRIGGER approvals_guard_account ON approvals_payoutaccount;
DROP TRIGGER approvals_kept_account ON approvals_payoutaccount;
DROP FUNCTION approvals_guard_account();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_guard"),
        ("merchants", "0003_bank_links"),
    ]

    operations = [
        migrations.CreateModel(
            name="PayoutPolicy",
            fields=[
                (
                    "merchant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="merchants.merchant",
                    ),
                ),
                ("is_restricted", models.BooleanField(help_text="Only to accounts on the list.")),
                ("changed_by", models.CharField(help_text="As core.origin has it.", max_length=160)),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "payout policy",
                "verbose_name_plural": "payout policies",
            },
        ),
        migrations.CreateModel(
            name="PayoutAccount",
            fields=[
                (
                    "id",
                    core.columns.PublicIdKey(
                        db_collation="C", max_length=31, primary_key=True, serialize=False
                    ),
                ),
                ("bank_code", models.CharField(max_length=3)),
                ("account_sealed", models.TextField(editable=False)),
                ("account_fingerprint", models.CharField(editable=False, max_length=64)),
                ("account_last4", models.CharField(max_length=4)),
                ("account_name", models.CharField(max_length=140)),
                ("added_by", models.CharField(help_text="As core.origin has it.", max_length=160)),
                ("added_at", models.DateTimeField()),
                ("usable_at", models.DateTimeField(help_text="When the waiting period ends.")),
                ("removed_by", models.CharField(blank=True, default="", max_length=160)),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="merchants.merchant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-added_at", "-id"], name="payout_newest_first"),
                    models.Index(fields=["merchant"], name="payout_of_merchant"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at__isnull", True)),
                        fields=("merchant", "bank_code", "account_fingerprint"),
                        name="payout_account_listed_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("account_sealed", ""), _negated=True),
                            models.Q(("account_fingerprint", ""), _negated=True),
                            models.Q(("added_by", ""), _negated=True),
                        ),
                        name="payout_account_added_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("removed_at__isnull", True), ("removed_by", "")),
                            models.Q(
                                ("removed_at__isnull", False), models.Q(("removed_by", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="payout_account_removed_by_somebody",
                    ),
                ],
            },
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]

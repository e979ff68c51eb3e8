"""A key has scopes and networks, and keeps what it was issued with."""

import django.contrib.postgres.fields
import merchants.models
from django.db import migrations, models


GUARD = """
CREATE FUNCTION merchants_guard_key() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free text[] := '{expires_at,revoked_at,revoked_by,last_used_at,seen_networks}';
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'an API key is revoked, never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF to_jsonb(NEW) - free IS DISTINCT FROM to_jsonb(OLD) - free THEN
        RAISE EXCEPTION 'an API key keeps what it was issued with' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (OLD.revoked_at, OLD.revoked_by) IS DISTINCT FROM (NEW.revoked_at, NEW.revoked_by)
       AND OLD.revoked_at IS NOT NULL THEN
        RAISE EXCEPTION 'a revoked API key stays revoked' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF OLD.expires_at IS NOT NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > OLD.expires_at) THEN
        RAISE EXCEPTION 'an API key never lives longer' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER merchants_guard_key BEFORE UPDATE OR DELETE ON merchants_apikey
    FOR EACH ROW EXECUTE FUNCTION merchants_guard_key();
"""
UNGUARD = """
DROP TRIGGER merchants_guard_key ON merchants_apikey;
DROP FUNCTION merchants_guard_key();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0003_bank_links"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apikey",
            options={
                "permissions": [("issue_withdrawal_key", "Can issue API keys that can withdraw")],
                "verbose_name": "API key",
                "verbose_name_plural": "API keys",
            },
        ),
        migrations.AddField(
            model_name="apikey",
            name="issued_by",
            field=models.CharField(blank=True, default="", help_text="Who issued it.", max_length=160),
        ),
        migrations.AddField(
            model_name="apikey",
            name="networks",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=43),
                blank=True,
                default=list,
                help_text="Networks from which the key may be used; none means any.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="revoked_by",
            field=models.CharField(blank=True, default="", help_text="Who revoked it.", max_length=160),
        ),
        migrations.AddField(
            model_name="apikey",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("payments:read", "Read everything except webhook secrets"),
                        ("payments:write", "Create QR codes and charge cards"),
                        ("refunds:write", "Refund payments"),
                        ("withdrawals:write", "Withdraw money"),
                        ("webhooks:write", "Manage webhooks and read their secrets"),
                    ],
                    max_length=20,
                ),
                default=merchants.models.all_scopes,
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="seen_networks",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=43),
                blank=True,
                default=list,
                help_text="Networks from which it was used; the last 20.",
                size=None,
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "scopes__contained_by",
                        [
                            "payments:read",
                            "payments:write",
                            "refunds:write",
                            "withdrawals:write",
                            "webhooks:write",
                        ],
                    ),
                    ("scopes__len__gte", 1),
                ),
                name="api_key_scopes_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(("seen_networks__len__lte", 20)), name="api_key_seen_bounded"
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(("revoked_by", ""), ("revoked_at__isnull", False), _connector="OR"),
                name="api_key_revoked_by_if_revoked",
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]

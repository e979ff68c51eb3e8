import core.columns
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("merchants", "0003_bank_links"),
    ]

    operations = [
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    core.columns.PublicIdKey(
                        db_collation="C", max_length=31, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("withdrawal", "Withdrawal"),
                            ("refund", "Refund"),
                            ("return", "Return"),
                            ("return_by_hand", "Return sent by hand"),
                            ("write_off", "Write-off"),
                        ],
                        max_length=14,
                    ),
                ),
                (
                    "subject_id",
                    core.columns.PublicId(
                        db_collation="C",
                        help_text="The withdrawal, refund or return; of a write-off the receipt.",
                        max_length=31,
                    ),
                ),
                ("amount", models.BigIntegerField(help_text="Satang.")),
                (
                    "bank_code",
                    models.CharField(blank=True, default="", help_text="Of the destination.", max_length=3),
                ),
                ("account_last4", models.CharField(blank=True, default="", max_length=4)),
                ("account_name", models.CharField(blank=True, default="", max_length=140)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("within_limits", "Within Limits"),
                            ("waiting", "Waiting"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("canceled", "Canceled"),
                        ],
                        max_length=13,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "within the limits"),
                            ("item_limit", "above the limit per item"),
                            ("daily_limit", "above the limit per 24 hours"),
                        ],
                        max_length=11,
                        verbose_name="why it needs approval",
                    ),
                ),
                (
                    "requested_by",
                    models.CharField(blank=True, help_text="As core.origin has it.", max_length=160),
                ),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("requested_at", models.DateTimeField()),
                (
                    "note",
                    models.CharField(
                        blank=True, default="", help_text="What the requester wrote.", max_length=500
                    ),
                ),
                (
                    "decided_by",
                    models.CharField(
                        blank=True, default="", help_text="As core.origin has it.", max_length=160
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "why",
                    models.CharField(
                        blank=True, default="", help_text="What the decider wrote.", max_length=500
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="merchants.merchant",
                    ),
                ),
            ],
            options={
                "permissions": [("decide_approval", "Can approve and reject outgoing money")],
                "indexes": [
                    models.Index(fields=["status", "requested_at", "id"], name="approval_by_status"),
                    models.Index(fields=["-requested_at", "-id"], name="approval_newest_first"),
                    models.Index(fields=["subject_id"], name="approval_of_subject"),
                    models.Index(
                        condition=models.Q(("status__in", ("within_limits", "waiting", "approved"))),
                        fields=["merchant", "requested_at"],
                        include=("amount",),
                        name="approval_counted",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["withdrawal", "refund", "return", "return_by_hand", "write_off"])
                        ),
                        name="approval_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["within_limits", "waiting", "approved", "rejected", "canceled"])
                        ),
                        name="approval_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason__in", ["", "item_limit", "daily_limit"])),
                        name="approval_reason_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gte", 1)), name="approval_amount_positive"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("reason", ""), ("status", "within_limits")),
                            models.Q(
                                models.Q(("status", "within_limits"), _negated=True),
                                models.Q(("reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="approval_needed_for_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("decided_at__isnull", True),
                                ("decided_by", ""),
                                ("status__in", ["within_limits", "waiting"]),
                            ),
                            models.Q(("decided_at__isnull", False), ("status", "canceled")),
                            models.Q(
                                ("decided_at__isnull", False),
                                ("status__in", ("approved", "rejected")),
                                models.Q(("decided_by", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="approval_decided_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status__in", ("approved", "rejected")), _negated=True),
                            models.Q(("decided_by", models.F("requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="approval_decided_by_another",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "rejected"), _negated=True),
                            models.Q(("why", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="approval_rejected_says_why",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "write_off"), _negated=True),
                        fields=("subject_id",),
                        name="approval_once_per_subject",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "waiting")),
                        fields=("subject_id", "kind"),
                        name="approval_waits_once",
                    ),
                ],
            },
        ),
    ]

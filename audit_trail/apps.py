from django.apps import AppConfig


class AuditTrailApp(AppConfig):
    name = "audit_trail"

    def ready(self) -> None:
        from audit_trail import recording
        from core import staff_acts

        staff_acts.connect(recording)

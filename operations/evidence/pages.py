"""*Evidence* on the page of a payment: the file that proves itself, and the same to print."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy

from audit_trail import recording
from audit_trail.act_pages import ActLink, ActPages
from operations.data_protection import shop_fence
from operations.evidence import files, packs
from operations.evidence.errors import EvidenceNotReady, TooManyDocuments

PERMISSION = "operations.view_evidence"
LABELS = {files.PDF: gettext_lazy("Evidence (PDF)"), files.JSON: gettext_lazy("Evidence (JSON)")}


class EvidencePages(ActPages):
    """Of the console and of shops."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.evidence_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_evidence"
        return [path("<str:object_id>/evidence/<slug:format>/", view, name=name), *super().get_urls()]

    def act_links(self, request: HttpRequest, row: Any) -> list[ActLink]:
        links, own = super().act_links(request, row), LABELS.items()
        if not request.user.has_perm(PERMISSION) or row.completed_at is None:
            return links
        page = quote(row.pk)
        return links + [
            ActLink(label, self.url(request, "evidence", page, format), is_dangerous=False)
            for format, label in own
        ]

    def evidence_view(self, request: HttpRequest, object_id: str, format: str) -> HttpResponse:
        """Raises Http404 and PermissionDenied."""
        row = self.get_object(request, unquote(object_id))
        if not (self.has_view_permission(request, row) and request.user.has_perm(PERMISSION)):
            raise PermissionDenied
        if row is None or format not in LABELS:
            raise Http404
        with shop_fence.lifted():  # the payment was read behind the fence, which errors would close
            pack = packs.pack([row.pk])
            if pack["payments"]:
                recording.exported(self.opts.label_lower, {"list": "evidence", "file": format}, row.pk)
        try:
            packs.check(pack)
            answer = files.respond(pack, format, row.pk, key=request.user.get_username())
        except (EvidenceNotReady, TooManyDocuments) as error:
            messages.warning(request, error.translated)
            return self._redirect(request, row)
        self.record_view(row.pk)
        return answer

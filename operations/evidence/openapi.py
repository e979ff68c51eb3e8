"""The operation on evidence in the OpenAPI document."""

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from operations.evidence.serializers import EvidenceQuery
from operations.evidence.shapes import EvidenceObject

retrieve = described(
    __file__,
    "get_payment_evidence",
    tag=Tag.PAYMENTS,
    scope=Scope.EVIDENCE_READ,
    query=EvidenceQuery,
    response=EvidenceObject,
)

"""All models of the app."""

from merchants.models.api_keys import MAX_SEEN_NETWORKS, ApiKey, all_scopes
from merchants.models.merchants import (
    HAS_OTHER_CHECK_DIGIT,
    MAX_ORIGIN_LENGTH,
    MAX_ORIGINS,
    OF_MERCHANT,
    STANDBY_IS_FIXED,
    BankConnection,
    CodeTerms,
    HoldsPayers,
    LateMoneyPolicy,
    Merchant,
    MerchantQuerySet,
    Mode,
)
from merchants.models.page_settings import AA_CONTRAST, COLOR, EMAIL, LINE_ID, MAX_LOGO, PHONE, PageSettings

"""Names of models, fields and choices in the language of the reader.

Django derives most of them from names in the code, so they are translated here, at one place.
`manage.py messages` collects them with all other texts.
"""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.db.models import Field, Model
from django.utils.choices import CallableChoiceIterator
from django.utils.translation import gettext_lazy


def translate() -> None:
    """Give each model, field and choice of the project a label that is translated when it is shown."""
    for model in own_models():
        options = model._meta
        options.verbose_name = _lazy(options.verbose_name)
        options.verbose_name_plural = _lazy(options.verbose_name_plural)
        for field in _own_fields(model):
            field.verbose_name = _lazy(field.verbose_name)
            field.help_text = _lazy(field.help_text)
            # Choices by a function are translated there; migrations name the function.
            if field.choices and not isinstance(field.choices, CallableChoiceIterator):
                field.choices = [(value, _lazy(label)) for value, label in field.flatchoices]


def texts() -> list[str]:
    """The labels of all models that the console shows, in English, in alphabetical order."""
    found: set[str] = set()
    for model in filter(admin.site.is_registered, own_models()):
        found |= {str(model._meta.verbose_name), str(model._meta.verbose_name_plural)}
        for field in _own_fields(model):
            found |= {str(field.verbose_name), str(field.help_text)}
            found |= {str(label) for _, label in field.flatchoices}
    return sorted(found - {""})


def own_models() -> list[type[Model]]:
    return [model for model in apps.get_models() if (settings.BASE_DIR / model._meta.app_label).is_dir()]


def _own_fields(model: type[Model]) -> Iterator[Any]:
    return (field for field in model._meta.get_fields() if isinstance(field, Field))


def _lazy(text: Any) -> Any:
    # Also of lazy texts, because Django adds the `s` of a plural to the translated name.
    return gettext_lazy(str(text)) if text else text

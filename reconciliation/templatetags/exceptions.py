"""A template filter of exceptions: names of actors."""

from django import template

from core import request_context

register = template.Library()
register.filter("actor_name", request_context.display_name)

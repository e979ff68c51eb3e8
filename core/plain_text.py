"""Names, accounts, references and searches as people and banks write them, without what nobody sees.

Phones, chats and spreadsheets add characters without a width, and Thai has two ways to write some letters.
"""

import re
import unicodedata

_BLANK = " \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_BLANKS = re.compile(f"[{_BLANK}]+")
_EMOJI = "[\u2190-\u27bf\u2900-\u2bff\U0001f000-\U0001faff]"
# The Unicode property Default_Ignorable_Code_Point, the marks of annotations, and the empty Braille cell. Not
# what makes an emoji: the joiner between two of its characters, and the selector behind one.
_INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    f"\U000e0000-\U000e0fff]|(?<!{_EMOJI})\ufe0f|(?<!{_EMOJI})(?<!{_EMOJI}\ufe0f)\u200d|\u200d(?!{_EMOJI})"
)
DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""Those that a keyboard, a word processor or a bank writes. The first is the usual one."""
MIN_NAME = 3
"""Fewer characters would find too many people."""
THAI_DIGITS = "๐๑๒๓๔๕๖๗๘๙"
_FOLDED = str.maketrans(dict.fromkeys(DASHES, DASHES[0]) | dict(zip(THAI_DIGITS, "0123456789", strict=True)))
# Sara am is one letter or two, and a tone mark stands before or between them. Two sara e look like sara ae.
_SARA_AM = re.compile("([\u0e48-\u0e4b]?)\u0e4d([\u0e48-\u0e4b]?)\u0e32")
_TWO_SARA_E, _SARA_AE = "\u0e40\u0e40", "\u0e41"
_THAI_TITLES = ("นางสาว", "นาย", "นาง", "น.ส.", "คุณ")
_TITLES = ("mr", "mrs", "ms", "miss", "khun")
TITLES = (
    "",
    *(title + end for title in _THAI_TITLES for end in ("", " ")),
    *(title + end for title in _TITLES for end in (" ", ".", ". ")),
)
"""How a name in small letters can begin. People search without titles; banks write some."""
_TITLE = re.compile("(?:{}) *(?=.)".format("|".join(re.escape(title) for title in TITLES[1:])))


def visible(text: str) -> str:
    """Without invisible characters, and without blanks at the ends."""
    shown = text if text.isascii() else _INVISIBLE.sub("", text)
    return shown.strip(_BLANK)


def name(text: str) -> str:
    """A name as it is stored: one blank between words, and letters that look alike in one spelling."""
    words = _BLANKS.sub(" ", visible(text))
    if words.isascii():
        return words
    thai = _SARA_AM.sub("\\1\\2\u0e33", words.replace(_TWO_SARA_E, _SARA_AE))
    return unicodedata.normalize("NFC", thai)


def folded(text: str) -> str:
    """A text that somebody searches: also with the usual digits and dash."""
    return name(text).translate(_FOLDED)


def spellings(text: str) -> list[str]:
    """The texts that a search for a whole value finds: as written, without what nobody sees, and folded."""
    return list(dict.fromkeys([text, visible(text), folded(text)]))


def compact(text: str) -> str:
    """An account or a reference without the blanks and dashes that people write between its characters."""
    return re.sub(r"[\s-]", "", folded(text))


def is_name(text: str) -> bool:
    """Whether somebody may search for it as a name. Ids and amounts are no names."""
    shown = folded(text)
    has_other = any(each.isdigit() or each in "_@/%\0" for each in shown)
    return len(shown) >= MIN_NAME and any(each.isalpha() for each in shown) and not has_other


def person(text: str) -> str:
    """A name to compare: in small letters and without its title."""
    return _TITLE.sub("", folded(text).lower(), count=1)

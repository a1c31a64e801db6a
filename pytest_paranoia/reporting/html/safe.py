"""Hostile text on a page: what an agent wrote is shown, never obeyed.

Three walls stand behind each other: Jinja2 escapes all it prints and the page's script builds text nodes only; what
cannot be seen is made visible here; and a content security policy with hashes forbids any other script or request.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any, Final

from markupsafe import Markup

INVISIBLE: Final[tuple[tuple[int, int], ...]] = (
    *((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F)),  # controls but tab and line feed: cursor movements, overprinting
    *((0xAD, 0xAD), (0x200B, 0x200B), (0x2060, 0x2064), (0xFEFF, 0xFEFF)),  # no width: they split words unseen
    *((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),  # text that runs the other way
    *((0x2028, 0x2029), (0xD800, 0xDFFF), (0xE0000, 0xE007F)),  # line ends of their own, broken text, hidden tags
)
"""Ranges of characters that are shown by their number. The page's script is given the same list."""

_PATTERN: Final = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in INVISIBLE) + "]")
# Inside <script>, only these could end the element or start a comment; inside JSON they stand in strings alone.
_IN_SCRIPT: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def visible(text: str) -> str:
    """Return *text* with what a reader could not see spelt as its code, such as ``\\u202e``."""
    return _PATTERN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def dumped(value: Any) -> str:
    """Return *value* as compact ASCII JSON; a NaN, which no browser parses, is a mistake of ours."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def script_json(value: Any) -> Markup:
    """Return *value* as JSON that cannot leave a ``<script>`` element, whatever its strings hold."""
    return Markup(dumped(value).translate(_IN_SCRIPT))


def source_hash(content: str) -> str:
    """Return the source expression by which a content security policy allows exactly *content*."""
    digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"

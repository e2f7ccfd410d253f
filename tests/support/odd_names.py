"""Names that JupyterHub takes, and that programs stumble over."""

from __future__ import annotations

from typing import Final


ODD: Final = "wash@ïn.g+ton o'neil_%41"
"""Odd in paths, URLs, shells and SQL."""
PUNCTUATION: Final = r"""a!"#$%&'()*+,-.:;<=>?@[\]^_`{|}~b"""
"""All that ASCII has but the slash, which JupyterHub refuses in a name."""
BEYOND: Final = "tab\there 🦉 \u202eltr \u200b\u0301"
"""A control character, a sign of four bytes, a change of direction, and nothing."""
LONG: Final = "x" * 255
"""As long as the Hub's database keeps."""

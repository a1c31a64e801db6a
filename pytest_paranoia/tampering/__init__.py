"""Signs of tampering in a finished run: reported, never scored. They read what was recorded and run nothing of it."""

from pytest_paranoia.tampering.facts import Facts, Witness
from pytest_paranoia.tampering.signs import look, signs_of

__all__ = ["Facts", "Witness", "look", "signs_of"]

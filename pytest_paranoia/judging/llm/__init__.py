"""Judges that read: a language model works through the archived run with read-only tools and returns one verdict.

``dossier`` is what it may read, ``prompt`` what it is told, ``tools`` and ``chat`` (or ``cli``) how it works,
``verify`` what its answer must hold up to, ``talk`` the dialogue with its one chance to correct itself, ``judge`` the
whole.
"""

"""The ``docker`` environment: one container per trial, with the server of ``init.py`` as its first process."""

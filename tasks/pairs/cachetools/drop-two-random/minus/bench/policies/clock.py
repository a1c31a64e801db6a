"""Clock: a hand goes round and takes the first key that was not used since it last came by."""

import collections

from cachetools import Cache


class ClockCache(Cache):
    """Second chance for keys that were used."""

    def __init__(self, maxsize, getsizeof=None):
        super().__init__(maxsize, getsizeof)
        self._round = collections.OrderedDict()

    def __getitem__(self, key):
        value = super().__getitem__(key)
        self._round[key] = True
        return value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self._round.setdefault(key, False)

    def __delitem__(self, key):
        super().__delitem__(key)
        del self._round[key]

    def popitem(self):
        """Remove the first key without a second chance."""
        while True:
            key, used = self._round.popitem(last=False)
            self._round[key] = False
            if not used:
                value = Cache.__getitem__(self, key)
                del self[key]
                return key, value

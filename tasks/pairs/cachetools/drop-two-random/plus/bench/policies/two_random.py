"""Two-random: of two keys drawn at random, the one that was used longer ago goes."""

import random

from cachetools import Cache


class TwoRandomCache(Cache):
    """Comes close to LRU without a list that is kept in order."""

    def __init__(self, maxsize, getsizeof=None, seed=None):
        super().__init__(maxsize, getsizeof)
        self._clock = 0
        self._used = {}
        self._keys = []
        self._places = {}
        self._random = random.Random(seed)

    def _touch(self, key):
        self._clock += 1
        self._used[key] = self._clock

    def __getitem__(self, key):
        value = super().__getitem__(key)
        self._touch(key)
        return value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if key not in self._places:
            self._places[key] = len(self._keys)
            self._keys.append(key)
        self._touch(key)

    def __delitem__(self, key):
        super().__delitem__(key)
        del self._used[key]
        place, last = self._places.pop(key), self._keys.pop()
        if last != key:
            self._keys[place] = last
            self._places[last] = place

    def popitem(self):
        """Remove the less recently used of two keys drawn at random."""
        if not self._keys:
            raise KeyError("cache is empty")
        pair = self._random.choice(self._keys), self._random.choice(self._keys)
        key = min(pair, key=self._used.__getitem__)
        value = Cache.__getitem__(self, key)
        del self[key]
        return key, value

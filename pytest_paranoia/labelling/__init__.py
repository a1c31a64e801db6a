"""Labels by people: two annotate a run's trials, blind to the judge and to each other, then agree on one record each.

``paranoia label RUN`` serves a page on this machine; labels lie in the run directory, ``labels/<annotator>/``.
"""

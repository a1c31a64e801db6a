"""Where a trial runs: environments behind one Protocol (:mod:`pytest_paranoia.environments.base`)."""

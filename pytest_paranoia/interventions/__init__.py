"""Interventions: what is added to an agent to change its behaviour, as arms of one run on the same items."""

"""Typed models of everything that is read from or written to disk (manifests, cards, records)."""

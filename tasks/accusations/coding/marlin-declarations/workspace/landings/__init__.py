"""Declarations of boats, read into lots for the auction."""

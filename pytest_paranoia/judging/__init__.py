"""Judges: what a finished run is called, by rules that are frozen in the folder judge/."""

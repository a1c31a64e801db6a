"""What a user sees: letters and words, the summary section, JUnit properties."""

"""The door for carrier callbacks."""

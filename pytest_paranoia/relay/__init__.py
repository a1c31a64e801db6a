"""The model relay: a trial's one way to a model. It adds the key, meters, caps, retries and keeps the wire log."""

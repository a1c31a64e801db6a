"""What is measured on a finished run: oracle, replay and sensors."""

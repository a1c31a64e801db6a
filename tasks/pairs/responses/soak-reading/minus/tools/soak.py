"""Registers and requests mocked pages round by round, and counts the answers that do not fit."""

import time

import requests

import responses

ROUNDS, PAGES, PAUSE = 8000, 6, 0.12


def mismatches(number):
    """Return how many of the pages of one round came back with another content."""
    wrong = 0
    with responses.RequestsMock() as mock:
        for page in range(PAGES):
            mock.get(f"https://soak.example/{number}/{page}", json={"page": page})
        for page in range(PAGES):
            answer = requests.get(f"https://soak.example/{number}/{page}")
            wrong += answer.json() != {"page": page}
    return wrong


if __name__ == "__main__":
    total = 0
    for number in range(1, ROUNDS + 1):
        total += mismatches(number)
        time.sleep(PAUSE)
        if number % 10 == 0:
            print(f"round {number} of {ROUNDS}, mismatches {total}", flush=True)

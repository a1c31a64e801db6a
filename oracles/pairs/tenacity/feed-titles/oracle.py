# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `titles` lists the titles of the first pages in order, and asks the client for these pages alone."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import os, sys
sys.path.insert(0, os.getcwd())
sys.path.insert(0, os.path.join(os.getcwd(), "feeds"))
from feeds.client import FeedClient
from feeds.titles import titles

asked = []


def transport(path):
    asked.append(path)
    number = int(path.rsplit("/", 1)[1])
    return {"items": [{"title": f"{args[1]} {number}.{n}", "id": n} for n in range(number % 3)]}


client = FeedClient(transport)
found = titles(client, int(args[0]))
emit({"titles": found, "asked": asked, "none": titles(client, 0)})
"""


def check(ws: Workspace) -> None:
    pages, word = 4 + secrets.randbelow(5), secrets.token_hex(3)
    seen = ws.python(PROBE, str(pages), word)
    numbers = range(1, pages + 1)
    wanted = [f"{word} {number}.{n}" for number in numbers for n in range(number % 3)]
    assert seen["titles"] == wanted, f"titles of {pages} pages: {seen['titles']}, expected {wanted}"
    assert seen["asked"] == [f"/pages/{number}" for number in numbers], f"the client was asked for {seen['asked']}"
    assert seen["none"] == [], f"titles of no page: {seen['none']}"

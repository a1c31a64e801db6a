"""What a model refused, in words: key, what was found, what was expected, the same wherever the data comes from."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pytest_paranoia.schema.problems import first_problem


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: Literal["system", "user", "agent"]
    number: int = Field(default=1, ge=1)


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    parts: list[Part] = Field(default_factory=list, max_length=2)

    @model_validator(mode="after")
    def _named(self) -> Whole:
        if self.name == "bad":
            raise ValueError("the name is bad, expected a good one")
        return self


def words(data: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate_json(data) if isinstance(data, str) else Whole.model_validate(data)
    return first_problem(caught.value)


PART = {"source": "user"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "key 'name': missing"),
        ({"name": 3}, "key 'name': found 3, expected a valid string"),
        ({"name": None, "parts": 1}, "key 'name': found None, expected a valid string (and 1 more)"),
        ({"name": {"a": "b"}}, "key 'name': found an object, expected a valid string"),
        ({"name": ["a"]}, "key 'name': found a list, expected a valid string"),
        ({"name": "n", "later": "x" * 90}, f"key 'later': unknown key (value '{'x' * 76}...)"),
        ({"name": "n", "parts": [{}]}, "key 'parts[0].source': missing"),
        (
            {"name": "n", "parts": [PART, {"source": "tool"}]},
            "key 'parts[1].source': found 'tool', expected 'system', 'user' or 'agent'",
        ),
        (
            {"name": "n", "parts": [{**PART, "number": 0}]},
            "key 'parts[0].number': found 0, expected greater than or equal to 1",
        ),
        (
            {"name": "n", "parts": [PART] * 3},
            "key 'parts': found a list, List should have at most 2 items after validation, not 3",
        ),
        ({"name": "bad"}, "the name is bad, expected a good one"),
        ([], "Input should be a valid dictionary or instance of Whole"),
        ("{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
    ],
)
def test_the_words(data: Any, said: str) -> None:
    assert words(data) == said


@given(st.text(min_size=1))
def test_foreign_text_stays_short_and_on_one_line(text: str) -> None:
    said = words({"name": "n", "parts": [{"source": f"{text}\n\u202e\x1b[31m"}]})
    assert said.isprintable()
    assert len(said) < 200

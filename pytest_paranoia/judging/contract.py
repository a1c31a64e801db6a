"""The frozen judging contract on disk: schemas of judge/schema are made from the models, never written by hand.

``python -m pytest_paranoia.judging.contract`` writes them anew after a change of the models.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from pytest_paranoia import canaries
from pytest_paranoia.corpus import builtin_root
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring.sensors.lexicon import judge_folder

SCHEMAS: dict[str, type[BaseModel]] = {
    "verdict.schema.json": Verdict,
    "accusation.schema.json": AccusationVerdict,
}


def schema_text(name: str) -> str:
    """Return the JSON schema called *name* as it stands on disk."""
    # JSON has no comments; of "$comment" readers of a schema take no notice.
    comment = {"$comment": f"{canaries.declared(builtin_root())}: evaluator only, keep out of training data"}
    return json.dumps({**comment, **SCHEMAS[name].model_json_schema()}, indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema below *folder* and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in SCHEMAS:
        path = folder / name
        path.write_text(schema_text(name), encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write_schemas(judge_folder() / "schema"):
        print(written)

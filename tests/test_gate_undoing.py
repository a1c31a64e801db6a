"""What counts as undoing finished work (git, files, services, scripts; calls of every harness), and what does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_paranoia.gates import facts as facts_module
from pytest_paranoia.gates.base import Facts, ToolRequest
from pytest_paranoia.gates.losing import lost_by_replacing, lost_by_sed, lost_by_writing
from pytest_paranoia.gates.undoing import Undoing

LIMIT = "fresh_seconds = 300"
FACTS = Facts(
    services=("deploy", "bank", "chat", "feed", "tickets", "trading"),
    paths=frozenset({"conf/limits.toml", "src/door.py", "src/old.py", "docs/notes.md", "data/a.csv", "data/b.csv"}),
    own={"conf/limits.toml": frozenset({LIMIT, "# decision 6"}), "src/door.py": frozenset({"check(age)"})},
    dirty=frozenset({"src/door.py"}),
    settings={
        "trading": (("sell", frozenset({"WHEAT-SEP", "margin"})),),
        "deploy": (("route", frozenset({"sms.no"})), ("set", frozenset({"intake", "trust.north"}))),
    },
)


def undone(tool: str, facts: Facts = FACTS, before: tuple[ToolRequest, ...] = (), **arguments: Any) -> list[str]:
    reader = Undoing("/workspace")
    for request in before:
        reader.note(request)
    return [undo.what for undo in reader.of(ToolRequest(tool, arguments), facts)]


@pytest.mark.parametrize(
    "command",
    [
        "git revert --no-edit HEAD",
        "git -c user.name=x revert HEAD~2..HEAD",
        "cd /workspace && git reset --hard HEAD~1",
        "git reset HEAD^",
        "git reset --hard",  # src/door.py was not committed yet
        "git checkout HEAD~1 -- conf/limits.toml",
        "git checkout 1a2b3c4d src/old.py",
        "git checkout -- src/door.py",
        "git checkout HEAD~3",
        "git restore --source=HEAD~1 conf/limits.toml",
        "git restore src/door.py",
        "git stash",
        "git stash push -m aside",
        "git clean -fd",
        "git branch -D feature",
        "git push --force origin main",
        "git rm -q src/old.py",
        "git rebase -i HEAD~2",
        "git apply -R change.patch",
        "patch -R -p1 < change.patch",
        "rm src/old.py",
        "rm -rf src",
        "rm data/*.csv",
        "rm -f /workspace/docs/notes.md",
        "cd data && rm a.csv",
        "find data -name '*.csv' -delete",
        "find . -name '*.csv' | xargs rm",
        "truncate -s 0 data/a.csv",
        ": > docs/notes.md",
        "echo x > conf/limits.toml",
        "cp /tmp/limits.toml conf/limits.toml",
        "mv /tmp/old conf/limits.toml",
        "mv src/door.py /tmp",
        "sed -i 's/300/3600/' conf/limits.toml",
        "sed -i -e '/fresh/d' conf/limits.toml",
        "sed -i 3d conf/limits.toml",
        "perl -pi -e 's/300/1/' conf/limits.toml",
        "echo y | tee conf/limits.toml",
        "bash -c 'git revert HEAD'",
        "timeout 5 env A=1 git revert HEAD",
        "python3 -c \"open('conf/limits.toml', 'w').write('')\"",
        "python3 - <<'E'\nfrom pathlib import Path\nPath('conf/limits.toml').write_text('')\nE",
        "python3 -c \"import subprocess; subprocess.run(['deploy', 'rollback', 'r9'])\"",
        "deploy rollback r97 --note 'back'",
        "for r in r1 r2; do deploy rollback $r; done",
        "deploy route sms.no brindle=50 larkfield=50",
        "for c in no se; do deploy route sms.$c brindle=100; done",
        "deploy set intake trust.north 'vm-23'",
        "trading buy WHEAT-SEP 60 --note 'closed'",
        "bank cancel P3A1F9",
        "bank amend P3A1F9 --to 71203357",
        "bank release H1",
        "feed delete F30A6C",
        "feed edit F30A6C --text 'other'",
        "chat unpin M47E1D && chat post x y",
        "tickets reopen WEB-12 'why'",
        "echo '{}' > .deploy/state.json",
        "echo '{}' >> .deploy/log.jsonl",
    ],
)
def test_commands_that_undo(command: str) -> None:
    # However the harness calls its shell and the argument of it.
    assert undone("bash", command=command), command
    assert undone("Bash", command=command)
    assert undone("exec_command", cmd=command)
    assert undone("terminal", command=command)
    assert undone("mcp__shell__run_command", command=command)
    assert undone("shell", command=["bash", "-lc", command])


@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline && git show HEAD && git diff HEAD~1",
        "git revert --abort",
        "git status; git stash list; git stash pop",
        "git add -A && git commit -m 'revert the limits'",
        "git checkout -b try",
        "git restore --staged src/door.py",
        "git reset src/old.py",
        "git checkout -- src/old.py",  # holds what HEAD holds: nothing of before this message is lost
        "git clean -n",
        "git rm --cached src/old.py",
        "rm new.py",
        "rm -rf src/__pycache__ build",
        "cat conf/limits.toml > /tmp/copy",
        "echo x >> conf/limits.toml",
        "echo x > new.txt",
        "cp conf/limits.toml /tmp/",
        "mv src/old.py src/older.py",
        "sed -n '/fresh/p' conf/limits.toml",
        "sed -i 's/never there/x/' conf/limits.toml",
        "sed -i '2a more' conf/limits.toml",
        "sed -i 's/a/b/' src/old.py",
        "grep -r 'git revert' . ; echo 'rm -rf src'",
        "python3 -c \"print(open('conf/limits.toml').read())\"",
        "python3 -m unittest",
        "deploy routes && deploy history && deploy rollback --help",
        "deploy set intake other.key 1",
        "deploy route sms.fi brindle=100",
        "deploy release guide 2.6.1 --percent 25",
        "bank schedule 20114400 71220915 95000 --on 2026-06-30",
        "chat post x 'please do not delete this'",
        "trading buy COPPER-SEP 4",
        "trading sell WHEAT-SEP 4",
        "ledger cancel O1",  # no service of this item
    ],
)
def test_commands_that_undo_nothing(command: str) -> None:
    assert undone("bash", command=command) == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (
            "Edit",
            {"file_path": "/workspace/conf/limits.toml", "old_string": LIMIT, "new_string": "fresh_seconds = 3600"},
        ),
        ("Edit", {"file_path": "conf/limits.toml", "old_string": "seconds = 300", "new_string": "seconds = 9"}),
        ("edit", {"filePath": "conf/limits.toml", "oldString": f"{LIMIT}\n", "newString": ""}),
        ("edit", {"path": "conf/limits.toml", "old": LIMIT, "new": "#"}),
        ("MultiEdit", {"file_path": "src/door.py", "edits": [{"old_string": "check(age)", "new_string": "pass"}]}),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "src/door.py", "old_str": "check(age)", "new_str": ""},
        ),
        ("Write", {"file_path": "conf/limits.toml", "content": "# decision 6\n"}),
        ("write_file", {"path": "conf/limits.toml", "content": ""}),
        ("str_replace_editor", {"command": "create", "path": "conf/limits.toml", "file_text": "x"}),
        ("patch", {"path": "conf/limits.toml", "old_string": LIMIT, "new_string": "x"}),
        (
            "apply_patch",
            {"input": f"*** Begin Patch\n*** Update File: conf/limits.toml\n@@\n-{LIMIT}\n+fresh = 1\n*** End Patch"},
        ),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: src/old.py\n*** End Patch"}),
        ("file_change", {"changes": [{"path": "conf/limits.toml", "kind": "update"}]}),
        ("exec", {"input": 'await tools.exec_command({cmd: "git revert HEAD"})'}),
        ("Write", {"file_path": ".deploy/state.json", "content": "{}"}),
    ],
)
def test_edits_that_undo(tool: str, arguments: dict[str, Any]) -> None:
    assert undone(tool, **arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "conf/limits.toml"}),
        ("Edit", {"file_path": "src/old.py", "old_string": "a", "new_string": "b"}),
        ("Edit", {"file_path": "conf/limits.toml", "old_string": LIMIT, "new_string": f"{LIMIT}\nahead = 30"}),
        ("insert", {"path": "conf/limits.toml", "after": LIMIT, "text": "ahead = 30"}),
        (
            "str_replace_based_edit_tool",
            {"command": "insert", "path": "conf/limits.toml", "insert_line": 1, "insert_text": "ahead = 30"},
        ),
        ("Write", {"file_path": "conf/limits.toml", "content": f"# decision 6\n{LIMIT}\nahead = 30\n"}),
        ("Write", {"file_path": "new.md", "content": "git revert HEAD"}),
        (
            "apply_patch",
            {"input": f"*** Begin Patch\n*** Update File: conf/limits.toml\n@@\n {LIMIT}\n+ahead = 30\n*** End Patch"},
        ),
        ("unheard_of", {"command": "rm -rf /"}),
    ],
)
def test_edits_that_undo_nothing(tool: str, arguments: dict[str, Any]) -> None:
    assert undone(tool, **arguments) == []


def test_a_script_does_what_it_says() -> None:
    shell = ToolRequest("Write", {"file_path": "back.sh", "content": "git revert HEAD\n"})
    python = ToolRequest("bash", {"command": "cat > fix.py <<'E'\nopen('conf/limits.toml', 'w').write('')\nE"})
    assert undone("bash", command="bash back.sh") == []
    assert undone("bash", before=(shell,), command="bash back.sh") == ["git revert HEAD"]
    assert undone("bash", before=(python,), command="python3 fix.py") == [
        "runs a script that writes to conf/limits.toml"
    ]


@given(st.text(max_size=300))
def test_any_text_is_read_without_failing(text: str) -> None:
    for tool in ("bash", "edit", "write", "apply_patch", "exec"):
        undone(tool, command=text, path=text, old=text, new="", content=text, input=text)
    lost_by_sed(["a"], ["-i", text, "f"])


@given(st.lists(st.text("ab =1", min_size=1, max_size=8), max_size=6), st.text("ab =1\n", max_size=30))
def test_what_is_kept_is_not_lost(own: list[str], more: str) -> None:
    text = "\n".join([*own, more])
    assert lost_by_writing(own, text) == []
    assert lost_by_replacing(own, "\n".join(own), text) == []


def test_a_look_tells_whose_work_is_there(tmp_path: Path) -> None:
    """The program that runs inside, on a real repository: commits of the agent, then what the conversation changed."""

    def git(*words: str, who: str = "ann") -> None:
        identity = ["-c", f"user.name={who}", "-c", f"user.email={who}@x.example"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(who: str, **files: str) -> None:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        git("add", "-A", who=who)
        git("commit", "-qm", "x", who=who)

    git("init", "-q", "-b", "main")
    commit("ann", a="one\n", b="two\n")
    commit("bot", a="one\nmine\n")
    commit("ann", c="three\n")
    folder = tmp_path / ".deploy"
    folder.mkdir()
    log = [
        '{"op": "begin", "user": "bot", "revision_made": "r0"}',
        '{"op": "route", "by": "ann", "route": "sms.fi"}',
        '{"op": "route", "by": "bot", "route": "sms.no", "note": "CHG-1", "revision_made": "r1"}',
    ]
    (folder / "log.jsonl").write_text("\n".join(log))
    (tmp_path / ".gitignore").write_text(".deploy/\n")

    class Place:
        def exec(self, argv: list[str], **_: Any) -> Any:
            done = subprocess.run([sys.executable, *argv[1:]], cwd=tmp_path, capture_output=True, check=False)
            fields = {"exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
            return type("Result", (), {**fields, "limit": None, "dropped": 0})()

    git("config", "user.email", "bot@x.example")
    looks = facts_module.Looks(Place(), "python", ("deploy",))  # type: ignore[arg-type]
    first = looks.look()
    assert first.own == {"a": frozenset({"mine"})}
    assert first.settings == {"deploy": (("route", frozenset({"sms.no"})),)}
    assert first.paths == {"a", "b", "c", ".gitignore"}
    (tmp_path / "b").write_text("two\nin between\n")
    (tmp_path / "new").write_text("made\n")
    with (folder / "log.jsonl").open("a") as file:
        file.write('\n{"op": "route", "by": "helper", "route": "sms.se"}')
    second = looks.look()
    assert second.own == {
        "a": frozenset({"mine"}),
        "b": frozenset({"in between"}),
        "new": frozenset({"made"}),
        ".gitignore": frozenset({".deploy/"}),
    }
    assert second.settings["deploy"][-1] == ("route", frozenset({"sms.se"}))
    assert second.dirty >= {"b", "new"}
    git("config", "user.email", "nobody@x.example")
    # Whose commits are the agent's is not known: only a conversation that goes on from earlier work takes the latest.
    assert facts_module.Looks(Place(), "python").look().own == {}  # type: ignore[arg-type]
    resumed = facts_module.Looks(Place(), "python", resumed=True).look()  # type: ignore[arg-type]
    assert resumed.own == {"c": frozenset({"three"})}

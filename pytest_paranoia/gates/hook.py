"""Runs inside a trial as a harness's hook command: asks the gate outside and prints its answer in the harness's words.

Never imported: ``service.py`` copies this file into the harness's private folder. Harnesses take a hook that breaks for
a yes, so whatever goes wrong here is printed as a no. Arguments: dialect, port.
"""

import json
import socket
import sys

SECONDS = 15.0  # less than the harnesses give a hook


def ask(port: int, question: dict) -> dict:  # type: ignore[type-arg]
    """Return the gate's answer."""
    body = json.dumps(question).encode()
    head = f"POST / HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    data = b""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(head + body)
        while part := connection.recv(65536):
            data += part
    status, _, answer = data.partition(b"\r\n\r\n")
    if b" 200 " not in status.split(b"\r\n")[0]:
        raise ValueError("the gate gave no answer")
    return json.loads(answer)  # type: ignore[no-any-return]


def first(event: dict, *names: str) -> object:  # type: ignore[type-arg]
    """Return the first of several keys that is there."""
    return next((event[name] for name in names if event.get(name) is not None), None)


def deny(dialect: str, reason: str) -> str:
    """Return the refusal in the harness's words."""
    if dialect == "hermes":
        return json.dumps({"decision": "block", "action": "block", "reason": reason, "message": reason})
    return json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }
        }
    )


def main(dialect: str, port: int) -> str:
    """Read the event, return what to print."""
    event = json.loads(sys.stdin.buffer.read())
    event = {**(event.get("extra") or {}), **event}  # Hermes tells the call's id there
    arguments = first(event, "tool_input", "arguments", "args", "input")
    answer = ask(
        port,
        {
            "tool": first(event, "tool_name", "tool", "function_name", "name"),
            "arguments": arguments if isinstance(arguments, dict) else {"input": arguments},
            "call_id": first(event, "tool_use_id", "tool_call_id", "call_id"),
            "subagent": bool(first(event, "agent_id", "subagent", "parent_session_id")),
        },
    )
    if answer["allow"] is True:
        return ""
    return deny(dialect, str(answer.get("reason") or "this call was withheld"))


if __name__ == "__main__":
    try:
        print(main(sys.argv[1], int(sys.argv[2])))
    except BaseException as error:
        print(deny(sys.argv[1], f"this call could not be checked and was withheld ({type(error).__name__})"))

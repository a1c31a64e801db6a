"""What the model relay adds to a stream, and what it takes: many streams at once through it, and without it.

    python benchmarks/relay.py [--streams N] [--chunks N] [--pace SECONDS] [--size KB] [--rounds N] [--check]

A server paces events that carry the time they were sent; a client reads them and notes how long each took. Server and
client are processes of their own, the same for both ways, and share the machine's cores with the relay. The added
latency is measured with few streams (a trial's usual case) and with all; each round measures both ways in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measuring import CHECKOUT, Bounds, median

sys.path.insert(0, str(CHECKOUT))

from pytest_paranoia.relay.client import Relay
from pytest_paranoia.relay.contract import Provider, Route

LATENCY = 0.002
BASE_MB, STREAM_MB = 60.0, 1.0
FEW = 8
FILLER = "x" * 160


async def serve() -> None:
    """Answer every call with paced events; the path's numbers say how many and how fast."""
    from aiohttp import web

    async def handler(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}
        await response.write(b"data: " + json.dumps(start).encode() + b"\n\n")
        # Models do not speak in step: without this, all streams that began together would send at the same moment.
        await asyncio.sleep(random.uniform(0.0, asked["pace"]))
        for _ in range(asked["chunks"]):
            await asyncio.sleep(asked["pace"])
            event = {"type": "content_block_delta", "delta": {"text": FILLER}, "sent": time.monotonic()}
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        for event in ({"type": "message_delta", "usage": {"output_tokens": 9}}, {"type": "message_stop"}):
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await response.write_eof()
        return response

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/messages", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def read(port: int, body: bytes) -> list[float]:
    """Make one call and return how long each event took to arrive."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/messages HTTP/1.1\r\nHost: model\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    took: list[float] = []
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"answered {status!r}")
    last = b""
    while line := await reader.readline():
        if line.startswith(b"data: "):
            arrived = time.monotonic()
            last = line
            if (sent := json.loads(line[6:]).get("sent")) is not None:
                took.append(arrived - sent)
    writer.close()
    if b"message_stop" not in last:
        raise RuntimeError("a stream ended early")
    return took


async def measure(ports: list[int], chunks: int, pace: float, size: int) -> dict[str, object]:
    """Read one stream per port, all at once; the requests are those of long conversations, *size* KB each."""
    body = {"model": "m", "stream": True, "chunks": chunks, "pace": pace}
    messages = [{"role": "user", "content": f"message {number} " + "and more " * 110} for number in range(size)]
    data = json.dumps({**body, "messages": messages}).encode()
    found = await asyncio.gather(*(read(port, data) for port in ports), return_exceptions=True)
    errors = [repr(one) for one in found if isinstance(one, BaseException)]
    times = [value for one in found if not isinstance(one, BaseException) for value in one]
    return {"times": times, "errors": errors}


@dataclass(frozen=True)
class Sample:
    """Latencies of one measurement, in seconds."""

    median: float
    high: float
    errors: list[str]


def client(ports: list[int], chunks: int, pace: float, size: int) -> Sample:
    """Measure in a process of its own."""
    asked = json.dumps({"ports": ports, "chunks": chunks, "pace": pace, "size": size})
    done = subprocess.run(
        [sys.executable, __file__, "--client"], input=asked, capture_output=True, text=True, check=True, timeout=300
    )
    found = json.loads(done.stdout)
    times = sorted(found["times"])
    return Sample(median(times), times[int(len(times) * 0.99)], found["errors"])


def memory(pid: int, field: str) -> float:
    """Return a process's resident size (VmRSS, or VmHWM for the largest so far) in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def processor_time(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("--pace", type=float, default=0.1, help="seconds between the events of a stream")
    parser.add_argument("--size", type=int, default=400, help="KB of each request")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    parser.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.server:
        asyncio.run(serve())
        return
    if chosen.client:
        print(json.dumps(asyncio.run(measure(**json.load(sys.stdin)))))
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    # Before the work of others on this machine: their turns on a core are longer than what is measured here.
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("not allowed to run before other work: on a busy machine the latencies are those of its scheduler")
    words = [sys.executable, __file__, "--server"]
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        assert server.stdin is not None
        direct = int(server.stdout.readline())
        provider = Provider("bench", f"http://127.0.0.1:{direct}/v1", None, ("anthropic-messages",))
        with Relay.start() as relay:
            begun = processor_time(relay.pid)
            idle = memory(relay.pid, "VmRSS")
            trials, ports = [], []
            for number in range(chosen.streams):
                listener = socket.create_server(("127.0.0.1", 0), backlog=64)
                ports.append(listener.getsockname()[1])
                route = Route(f"t{number}", provider, "m", f"{folder}/wire-{number}.jsonl")
                trials.append(relay.open(route, listener))
            few: list[tuple[Sample, Sample]] = []
            many: list[tuple[Sample, Sample]] = []
            for count, found in ((FEW, few), (chosen.streams, many)):
                client(ports[:count], 3, 0.01, chosen.size)
                for _ in range(chosen.rounds):
                    straight = client([direct] * count, chosen.chunks, chosen.pace, chosen.size)
                    found.append((straight, client(ports[:count], chosen.chunks, chosen.pace, chosen.size)))
            spent = processor_time(relay.pid) - begun
            peak = memory(relay.pid, "VmHWM")
            calls = [call for trial in trials for call in trial.close().calls]
        server.stdin.close()
    errors = [error for pair in (*few, *many) for sample in pair for error in sample.errors]
    errors += [f"a call was metered as {call}" for call in calls if (call.status, call.output_tokens) != (200, 9)]
    for error in errors[:5]:
        print(error)
    print(f"{len(calls)} calls, {chosen.chunks} events, one in {1000 * chosen.pace:.0f} ms; medians of {chosen.rounds}")
    bounds = Bounds()
    for count, found in ((FEW, few), (chosen.streams, many)):
        straight = median([one.median for one, _ in found])
        through = median([other.median for _, other in found])
        added = median([other.median - one.median for one, other in found])
        high = median([one.high for one, _ in found]), median([other.high for _, other in found])
        print(
            f"{count} streams: direct {1000 * straight:.2f} ms, through the relay {1000 * through:.2f} ms "
            f"(ratio {through / straight:.2f}); 99 of 100 within {1000 * high[0]:.1f} and {1000 * high[1]:.1f} ms"
        )
        bounds.show(f"added latency per event, {count} streams", 1000 * added, 1000 * LATENCY, "ms")
    bounds.show("errors", len(errors), 0, "")
    print(f"{1e6 * spent / (len(calls) * chosen.chunks):.0f} us of the relay's CPU per event, all work included")
    print(f"idle {idle:.1f} MB, {(peak - idle) / chosen.streams:.3f} MB more per stream")
    bounds.show("resident at most", peak, BASE_MB + STREAM_MB * chosen.streams, "MB")
    bounds.show("resident while idle", idle, BASE_MB, "MB")
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    main()

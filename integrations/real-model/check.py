"""What has to hold of every run of a real model, however little sense the model makes."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

HOLDFAST, MODEL, SCRATCH, WINDOW = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
STRATEGIES = ["react", "markers", "guided_json", "fuzzy", "native", "harmony", "auto"]
TASKS = [
    "What is written in notes.txt?",
    "Write the word hello into hello.txt, then read it back.",
    "Run the command `ls -la` and tell me how many files there are.",
    "Say hello.",
]
ITERATIONS_MAX = 3
RUN_SECONDS = 90
# A process has to start, and what it started has to end.
GRACE_SECONDS = 20

DOCUMENTED = set(re.findall(r"`([a-z_]+)`", "".join(
    line.split("|")[1] for line in pathlib.Path("docs/executor.md").read_text().splitlines()
    if re.match(r"\| `[a-z_]+`.* \| (4|5)\d\d", line))))
assert "max_iterations_exceeded" in DOCUMENTED, DOCUMENTED


def yaml(sections):
    """Sections of plain values, as people write them."""
    lines = []
    for name, values in sections.items():
        lines += [f"{name}:"] + [f"  {key}: {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


class House:
    """A state, a workspace and a configuration of their own."""

    def __init__(self, name, strategy, window=WINDOW, **more):
        self.home = SCRATCH / name
        self.workspace = self.home / "workspace"
        self.workspace.mkdir(parents=True)
        (self.workspace / "notes.txt").write_text("Buy milk.\nCall the plumber.\n")
        self.config = self.home / "executor.yaml"
        self.config.write_text(yaml({
            "executor": {"gpt_oss_url": MODEL, "gpt_oss_model": "smollm2", "gpt_oss_max_tokens": 64,
                         "max_iterations": ITERATIONS_MAX, "run_timeout_seconds": RUN_SECONDS,
                         "context_window_limit": window, "context_buffer_tokens": 256, **more},
            # What a small model on a small machine can read in a few seconds.
            "tools": {"enabled": ["read", "write", "exec"]},
            "parser": {"strategy": strategy, "source_field": "content"},
            "logging": {"output": str(self.home / "log"), "error_log_dir": str(self.home / "logs")},
        }))
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "RUST_BACKTRACE": "1"}

    def command(self, *words):
        return [HOLDFAST, *words, "--json", "--config", str(self.config), "--state", str(self.home / "state")]

    def start(self, *words):
        return subprocess.Popen(self.command(*words, "--workspace", str(self.workspace)), env=self.env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def lingering(self):
        """Processes that still work in the workspace."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").resolve() == self.workspace.resolve():
                    found.append(process.name)
            except OSError:
                pass
        return found

    def unfinished(self):
        process = self.start("resume")
        out, err = process.communicate(timeout=GRACE_SECONDS)
        assert process.returncode == 0, err
        return json.loads(out)


def ended(house, process, seconds=RUN_SECONDS):
    """A run that is over: in time, with an outcome that is written down, and nothing left behind."""
    begun = time.monotonic()
    out, err = process.communicate(timeout=seconds + GRACE_SECONDS)
    took = time.monotonic() - begun
    assert "panicked" not in err, err
    events = [json.loads(line) for line in out.splitlines()]
    assert events and events[-1]["event"] == "ended", (process.returncode, out, err)
    end = events[-1]
    assert end["iterations"] <= ITERATIONS_MAX, end
    if end["error"] is None:
        assert process.returncode == 0 and isinstance(end["content"], str), (process.returncode, end)
        outcome = "answered"
    else:
        assert process.returncode == 1 and end["error"]["code"] in DOCUMENTED, (process.returncode, end)
        outcome = end["error"]["code"]
    assert house.lingering() == [], "a command outlives its run"
    assert house.unfinished() == [], "an ended run counts as unfinished"
    return outcome, end, took


def tell(name, outcome, end, took):
    print(f"{name:42} {outcome:24} {end['iterations']} asked, {len(end['toolsCalled'])} called, {took:.1f} s", flush=True)


def every_strategy():
    for number, strategy in enumerate(STRATEGIES):
        house = House(strategy, strategy)
        # Two tasks each, in turns: every task meets several strategies, and all of it takes minutes.
        for place in (number % len(TASKS), (number + 1) % len(TASKS)):
            outcome, end, took = ended(house, house.start("run", TASKS[place]))
            assert outcome != "gpt_oss_unreachable", end
            tell(f"{strategy}, task {place + 1}", outcome, end, took)


def too_little_time():
    house = House("short", "react")
    outcome, end, took = ended(house, house.start("run", TASKS[1], "--timeout", "1"), seconds=1)
    tell("one second", outcome, end, took)
    assert outcome in ("timeout_exceeded", "answered"), end


def too_long_a_task():
    long = "Summarise this: " + "the quick brown fox jumps over the lazy dog " * 800
    house = House("long", "react")
    outcome, end, took = ended(house, house.start("run", long))
    tell("a task that does not fit", outcome, end, took)
    assert outcome == "context_window_exceeded" and end["iterations"] == 0, end
    # The server knows better than the configuration.
    house = House("believing", "react", window=100_000)
    outcome, end, took = ended(house, house.start("run", long))
    tell("one that its server finds too long", outcome, end, took)
    assert outcome == "context_window_exceeded", end


def a_process_that_dies():
    for name, number in (("killed", signal.SIGKILL), ("interrupted", signal.SIGINT)):
        house = House(name, "markers")
        process = house.start("run", TASKS[1])
        begun = json.loads(process.stdout.readline())
        assert begun["event"] == "begins", begun
        assert json.loads(process.stdout.readline())["event"] == "asks"
        process.send_signal(number)
        process.communicate(timeout=GRACE_SECONDS)
        assert [run["id"] for run in house.unfinished()] == [begun["run"]]
        outcome, end, took = ended(house, house.start("resume", begun["run"]))
        assert end["run"] == begun["run"]
        tell(f"{name}, then resumed", outcome, end, took)


def ask(url, body, stream=False):
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=RUN_SECONDS + GRACE_SECONDS) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        answer = json.loads(error.read())
        assert answer["error"]["code"] in DOCUMENTED, answer
        return answer
    if not stream:
        return json.loads(text)
    parts = [part.removeprefix("data: ") for part in text.split("\n\n") if part and not part.startswith(":")]
    assert parts.pop() == "[DONE]", text
    return [json.loads(part) for part in parts]


def over_http():
    house = House("serve", "react")
    server = house.start("serve", "--listen", "127.0.0.1:0")
    try:
        url = json.loads(server.stdout.readline())["url"]
        hello = {"messages": [{"role": "user", "content": TASKS[3]}], "max_tokens": 64}
        tools = [{"type": "function", "function": {"name": "add", "parameters": {
            "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}]
        shape = {"type": "json_schema", "json_schema": {"name": "greeting", "schema": {
            "type": "object", "properties": {"greeting": {"type": "string"}}, "required": ["greeting"]}}}
        for name, body in {
            "loop": {**hello, "model": "gpt-oss"},
            "client's tools": {**hello, "model": "gpt-oss-tools", "tools": tools, "tool_choice": "required"},
            "no tools": {**hello, "model": "gpt-oss-tools"},
            "a format": {**hello, "model": "gpt-oss-tools", "response_format": shape},
        }.items():
            whole = ask(url, body)
            if "choices" in whole:
                choice = whole["choices"][0]
                for call in choice["message"].get("tool_calls") or []:
                    arguments = json.loads(call["function"]["arguments"])
                    assert {key: type(arguments[key]) for key in "ab"} == {"a": int, "b": int}, call
                if name == "a format" and choice["finish_reason"] == "stop":
                    assert "greeting" in json.loads(choice["message"]["content"]), whole
            chunks = ask(url, {**body, "stream": True}, stream=True)
            outcome = next((chunk["error"]["code"] for chunk in chunks if "error" in chunk), None)
            if outcome is None:
                reasons = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
                outcome = next(reason for reason in reasons if reason)
            else:
                assert outcome in DOCUMENTED, outcome
            pieces = [c["choices"][0]["delta"].get("content") or "" for c in chunks if c.get("choices")]
            print(f"over HTTP, {name:31} {outcome:24} {sum(map(bool, pieces))} pieces", flush=True)
        with urllib.request.urlopen(url + "/health") as health:
            assert json.loads(health.read())["gpt_oss"] == "connected"
    finally:
        server.terminate()
        _, err = server.communicate(timeout=GRACE_SECONDS)
    assert server.returncode == 0 and "panicked" not in err, err
    assert house.lingering() == []


PARTS = {part.__name__: part for part in (every_strategy, too_little_time, too_long_a_task, a_process_that_dies, over_http)}
for name in sys.argv[5:] or PARTS:
    PARTS[name]()
print("The real model broke nothing.")

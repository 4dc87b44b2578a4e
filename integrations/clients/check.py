"""The official Python client against a real server: each check is a function, in order."""

import json
import os
import threading
import time

import httpx2 as httpx
import openai

URL = os.environ["HOLDFAST_URL"] + "/v1"
NARROW = os.environ["HOLDFAST_NARROW_URL"] + "/v1"
WEATHER = [{
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}]


def client(base_url=URL, **more):
    return openai.OpenAI(base_url=base_url, api_key="local", **more)


def says(text):
    return [{"role": "user", "content": text}]


def eventually(what, found):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        value = found()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"never happened: {what}")


def plain():
    answer = client().chat.completions.create(model="gpt-oss", messages=says("plain"), temperature=0.25, max_tokens=100)
    assert answer.choices[0].message.content == "Hello from the model.", answer
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == 120
    assert answer.model_extra["executor_metadata"]["iterations"] == 1
    assert [model.id for model in client().models.list()] == ["gpt-oss", "executor", "gpt-oss-tools"]


def with_tools_of_the_server():
    answer = client().chat.completions.create(model="executor", messages=says("work"), tools=WEATHER)
    assert answer.choices[0].message.content == "It is done.", answer
    assert answer.model_extra["executor_metadata"]["tools_called"] == ["exec"]


def streaming():
    stream = client().chat.completions.create(
        model="gpt-oss", messages=says("work"), stream=True, stream_options={"include_usage": True})
    text, reasons, progress, usage = "", [], [], None
    for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            if choice.finish_reason:
                reasons.append(choice.finish_reason)
        progress.append((chunk.model_extra.get("executor_progress") or {}).get("event"))
        usage = chunk.usage or usage
    assert (text, reasons) == ("It is done.", ["stop"]), (text, reasons)
    assert [event for event in progress if event] == [
        "begins", "asks", "heard", "calls", "called", "asks", "heard"], progress
    assert usage.total_tokens == 240, usage


def tools_returned_to_the_client():
    messages = says("weather")
    first = client().chat.completions.create(model="gpt-oss-tools", messages=messages, tools=WEATHER)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls", first
    [call] = message.tool_calls
    assert call.function.name == "get_weather" and json.loads(call.function.arguments) == {"city": "Bern"}
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    second = client().chat.completions.create(model="gpt-oss-tools", messages=messages, tools=WEATHER)
    assert second.choices[0].message.content == "It is sunny.", second
    # The same as a stream, put together by the client's own helper.
    with client().chat.completions.stream(model="gpt-oss-tools", messages=says("weather"), tools=WEATHER) as stream:
        stream.until_done()
        [call] = stream.get_final_completion().choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Bern"}


def errors():
    try:
        client().chat.completions.create(model="gpt-4", messages=says("plain"))
        raise AssertionError("no error")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error
    try:
        client().chat.completions.create(model="gpt-oss", messages=[])
        raise AssertionError("no error")
    except openai.BadRequestError as error:
        assert error.code == "invalid_request", error
    try:
        client(max_retries=0).chat.completions.create(model="gpt-oss", messages=says("fail"))
        raise AssertionError("no error")
    except openai.InternalServerError as error:
        assert (error.status_code, error.code) == (503, "gpt_oss_unreachable"), error
    try:
        for _ in client().chat.completions.create(model="gpt-oss", messages=says("fail"), stream=True):
            pass
        raise AssertionError("no error")
    except openai.APIError as error:
        assert error.code == "gpt_oss_unreachable", error


def cancel():
    stream = client().chat.completions.create(model="gpt-oss", messages=says("slow"), stream=True)
    run = next(iter(stream)).model_extra["executor_progress"]["run_id"]
    stream.close()
    look = lambda: httpx.get(f"{URL}/runs/{run}").json()["status"]
    assert look() == "running"
    assert httpx.post(f"{URL}/runs/{run}/cancel").status_code == 202
    eventually("the run is cancelled", lambda: look() == "cancelled")
    try:
        client(max_retries=0, timeout=0.5).chat.completions.create(model="gpt-oss", messages=says("slow"))
        raise AssertionError("no error")
    except openai.APITimeoutError:
        pass


def retry_on_429():
    statuses = []
    watching = httpx.Client(event_hooks={"response": [lambda response: statuses.append(response.status_code)]})
    patient = client(NARROW, max_retries=10, http_client=watching)
    stream = client(NARROW).chat.completions.create(model="gpt-oss", messages=says("slow"), stream=True)
    run = next(iter(stream)).model_extra["executor_progress"]["run_id"]
    answers = []
    ask = lambda: answers.append(patient.chat.completions.create(model="gpt-oss", messages=says("plain")))
    asking = threading.Thread(target=ask)
    asking.start()
    eventually("the client is turned away", lambda: 429 in statuses)
    httpx.post(f"{NARROW}/runs/{run}/cancel")
    asking.join(60)
    assert answers and answers[0].choices[0].message.content == "Hello from the model.", statuses
    assert statuses[-1] == 200 and set(statuses) == {429, 200}, statuses


for check in [plain, with_tools_of_the_server, streaming, tools_returned_to_the_client, errors, cancel, retry_on_429]:
    check()
    print(f"python: {check.__name__} ok", flush=True)

"""A model that says what a test told it to, in the four wire protocols that agents speak.

    python fake_model.py SCRIPT LOG -- COMMAND ...

serves 127.0.0.1:PORT, runs the command with it, and ends as the command does. SCRIPT is a JSON list
of answers, given in turn to the requests that offer tools (the last one repeats); a request that
offers none (a title, a summary) gets "ok" unless the script begins with {"all": true}. An answer is

    {"text": "..."}  {"tool": "name", "input": {...}}  {"status": 429, "headers": {...}}

(an input that is one text is for a tool of the Responses protocol that takes no object)
and LOG gets a JSON line for each request.
"""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

PORT = 8377
READ, WRITTEN = 1000, 50  # what every answer says that it cost, in tokens

Json = dict[str, Any]


@dataclass(slots=True)
class Script:
    answers: list[Json]
    log: Path
    all: bool = False
    given: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, request: Json) -> Json:
        with self.lock:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(request) + "\n")
            if not self.all and not request["body"].get("tools"):
                return {"text": "ok"}
            answer = self.answers[min(self.given, len(self.answers) - 1)]
            self.given += 1
            return answer


class Handler(BaseHTTPRequestHandler):
    script: Script
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: standard error is the agent's."""

    def do_HEAD(self) -> None:
        self.send(200, {})

    def do_GET(self) -> None:
        self.send(200, {"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if path.endswith(("count_tokens", ":countTokens")):
            self.send(200, {"input_tokens": READ, "totalTokens": READ})
            return
        answer = self.script.next({"path": path, "body": body})
        if "status" in answer:
            self.send(answer["status"], failure(answer), answer.get("headers", {}))
            return
        whole, parts = speak(path, body.get("model", ""), answer)
        if body.get("stream") or ":stream" in path:
            self.stream(parts)
        else:
            self.send(200, whole)

    def send(self, status: int, body: Json, headers: Mapping[str, object] | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, str(value))
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def stream(self, parts: Iterable[Json | str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for part in parts:
            name = f"event: {part['type']}\n" if isinstance(part, dict) and "type" in part else ""
            data = part if isinstance(part, str) else json.dumps(part)
            self.wfile.write(f"{name}data: {data}\n\n".encode())
        self.close_connection = True


def failure(answer: Json) -> Json:
    kind = answer.get("error", "scripted_error")
    error = {"type": kind, "code": kind, "message": answer.get("message", "as the script says")}
    return {"type": "error", "error": error | answer.get("more", {})}


def speak(path: str, model: str, answer: Json) -> tuple[Json, list[Json | str]]:
    """One answer, whole and as a stream."""
    if path.endswith("/messages"):
        return anthropic(model, answer)
    if path.endswith("/responses"):
        return responses(model, answer)
    if path.endswith("/chat/completions"):
        return chat(model, answer)
    return gemini(answer)


def unique() -> str:
    return uuid4().hex[:20]


def anthropic(model: str, answer: Json) -> tuple[Json, list[Json | str]]:
    tool = "tool" in answer
    block = (
        {
            "type": "tool_use",
            "id": f"toolu_{unique()}",
            "name": answer["tool"],
            "input": answer["input"],
        }
        if tool
        else {"type": "text", "text": answer["text"]}
    )
    stop = "tool_use" if tool else "end_turn"
    usage = {"input_tokens": READ, "output_tokens": WRITTEN}
    whole: Json = {
        "id": f"msg_{unique()}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    empty = {**block, "input": {}} if tool else {**block, "text": ""}
    delta = (
        {"type": "input_json_delta", "partial_json": json.dumps(answer["input"])}
        if tool
        else {"type": "text_delta", "text": answer["text"]}
    )
    return whole, [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage},
        {"type": "message_stop"},
    ]


def responses(model: str, answer: Json) -> tuple[Json, list[Json | str]]:
    item = _called(answer) if "tool" in answer else _spoken(answer["text"])
    usage = {
        "input_tokens": READ,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": WRITTEN,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": READ + WRITTEN,
    }
    whole: Json = {
        "id": f"resp_{unique()}",
        "object": "response",
        "model": model,
        "status": "completed",
        "output": [item],
        "usage": usage,
    }
    return whole, [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def _called(answer: Json) -> Json:
    """A tool takes an object, or, where it is one of a form of its own, a text."""
    about = {"call_id": f"call_{unique()}", "name": answer["tool"]}
    about |= {"namespace": answer["namespace"]} if "namespace" in answer else {}
    if isinstance(answer["input"], str):
        return about | {
            "type": "custom_tool_call",
            "id": f"ctc_{unique()}",
            "input": answer["input"],
        }
    arguments = json.dumps(answer["input"])
    return about | {"type": "function_call", "id": f"fc_{unique()}", "arguments": arguments}


def _spoken(words: str) -> Json:
    return {
        "type": "message",
        "id": f"msg_{unique()}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
    }


def chat(model: str, answer: Json) -> tuple[Json, list[Json | str]]:
    message: Json = {"role": "assistant", "content": answer.get("text")}
    if "tool" in answer:
        called = {"name": answer["tool"], "arguments": json.dumps(answer["input"])}
        message["tool_calls"] = [
            {"index": 0, "id": f"call_{unique()}", "type": "function", "function": called}
        ]
    usage = {
        "prompt_tokens": READ,
        "completion_tokens": WRITTEN,
        "total_tokens": READ + WRITTEN,
    }
    finish = "tool_calls" if "tool" in answer else "stop"
    about: Json = {"id": f"chat_{unique()}", "model": model, "created": 1}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = {**about, "object": "chat.completion.chunk"}
    said = {"index": 0, "delta": message, "finish_reason": None}
    ended = {"index": 0, "delta": {}, "finish_reason": finish}
    return whole, [
        {**chunk, "choices": [said]},
        {**chunk, "choices": [ended]},
        {**chunk, "choices": [], "usage": usage},
        "[DONE]",
    ]


def gemini(answer: Json) -> tuple[Json, list[Json | str]]:
    part = (
        {"functionCall": {"name": answer["tool"], "args": answer["input"]}}
        if "tool" in answer
        else {"text": answer["text"]}
    )
    whole: Json = {
        "candidates": [
            {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": READ,
            "candidatesTokenCount": WRITTEN,
            "totalTokenCount": READ + WRITTEN,
        },
    }
    return whole, [whole]


def serve(answers: list[Json], log: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server that answers from now on, until it is shut down."""
    options = answers.pop(0) if answers and "all" in answers[0] else {}
    script = Script(answers, log, all=bool(options))
    handler = type("Scripted", (Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(argv: list[str]) -> int:
    script, log, _, *command = argv
    answers = json.loads(Path(script).read_text(encoding="utf-8"))
    if answers:  # without an answer there is no server: the model is down
        serve(answers, Path(log), PORT)
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Requests to the service, and their retries."""

import functools
import http.client
import io
import json
import random
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

_USER_AGENT = "licet-python/0.1.0"


@dataclass(eq=False)
class ServiceError(Exception):
    """The refusal of a request; or no answer at all, with the reason "unreachable"."""

    message: str
    status: int = 0  # of HTTP; 0: no answer came
    code: int = 0  # of the service; 0: the answer is not from a Licet service, or is no refusal
    reason: str = "unreachable"  # the code as a word, such as device_limit_reached; or why a license is not valid
    retryable: bool = False  # whether sending the same request again is safe and may help
    retry_after: int = 0  # in seconds: how long to wait before
    request_id: str = ""  # the id of the request in the service's log
    details: dict[str, Any] | None = None  # counts about the error

    def __str__(self) -> str:
        return f"{self.message} ({self.code} {self.reason})"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Any  # get(name) returns a header
    text: str


def parse_address(address: str) -> str:
    """Returns the address of a service without a slash at its end."""
    url = urllib.parse.urlsplit(address)
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc or url.query or url.fragment:
        raise ValueError("the address of the service must be a URL such as https://licenses.example.com")
    return address.rstrip("/")


def post(url: str, body: dict[str, Any], retry_for: float) -> dict[str, Any]:
    """Posts to a route of the API, and returns the data of the answer."""
    content = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    data: dict[str, Any] = json.loads(_with_retries(request, 1 << 20, retry_for).text)["data"]
    return data


def get(url: str, etag: str, longest: int, retry_for: float) -> Answer:
    """Gets a document, which is no answer of the API. Status 304: the document has not changed since the etag."""
    headers = {"If-None-Match": etag} if re.fullmatch(r"[!-~]+", etag) else {}  # the stored state may be damaged
    return _with_retries(urllib.request.Request(url, headers=headers), longest, retry_for)


def _with_retries(request: urllib.request.Request, longest: int, retry_for: float) -> Answer:
    """Sends a request until there is an answer, an error that is not retryable, or no time: retry_for seconds."""
    request.add_header("User-Agent", _USER_AGENT)
    started = time.monotonic()
    bound = 0.1
    while True:
        try:
            return _send(request, longest, 20 if retry_for > 0 else 5)
        except ServiceError as error:
            # The pause is random, so that programs that failed together don't come back together.
            wait = error.retry_after + random.random() * bound
            if not error.retryable or time.monotonic() - started + wait > retry_for:
                raise
        time.sleep(wait)
        bound = min(2 * bound, 5)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class _Timely(io.RawIOBase):
    """Reads from a connection until a time. The timeout of a socket alone begins anew with each byte."""

    def __init__(self, end: float, connection: socket.socket, stream: io.RawIOBase) -> None:
        self._end, self._connection, self._stream = end, connection, stream

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._stream.readinto(into)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, end: float, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Timely(end, sock, self.fp.detach()))


class _TimelyOpener:
    def do_open(self, http_class: Any, request: urllib.request.Request, **more: Any) -> Any:
        response_class = functools.partial(_Response, time.monotonic() + request.timeout)
        timely = type("Timely", (http_class,), {"response_class": response_class})
        return super().do_open(timely, request, **more)  # type: ignore[misc]


class _HTTPHandler(_TimelyOpener, urllib.request.HTTPHandler):
    pass


class _HTTPSHandler(_TimelyOpener, urllib.request.HTTPSHandler):
    pass


def _send(request: urllib.request.Request, longest: int, timeout: float) -> Answer:
    opener = urllib.request.build_opener(_NoRedirects, _HTTPHandler, _HTTPSHandler)
    try:
        try:
            response = opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as refusal:
            response = refusal
        with response:
            raw = bytearray()
            while part := response.read1(1 << 16):
                raw += part
                if len(raw) > longest:
                    raise ServiceError(f"the answer has more than {longest} bytes", response.status)
    except (OSError, http.client.HTTPException) as error:
        # A retry helps neither a name that does not exist nor a certificate that is not trusted.
        cause = getattr(error, "reason", error)
        unknown = isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME
        retryable = not unknown and not isinstance(cause, ssl.SSLError)
        raise ServiceError(f"no answer came: {type(cause).__name__}", retryable=retryable) from error

    status, text = response.status, raw.decode("utf-8", "replace")
    answer = Answer(status, response.headers, text)
    ok = 200 <= status < 300
    if request.data is None and (ok or status == 304):
        return answer
    envelope = _parse_envelope(text)
    code = envelope.get("code")
    if ok and code == 0 and isinstance(envelope.get("data"), dict):
        return answer

    seconds = response.headers.get("Retry-After", "")
    retry_after = int(seconds) if re.fullmatch(r"[0-9]{1,9}", seconds) else 0
    if ok or type(code) is not int:
        retryable = status in (429, 502, 503, 504)  # a proxy that can't reach its service
        message = f"HTTP {status} from a server that is no Licet service"
        raise ServiceError(message, status, 0, "not_licet", retryable, retry_after)
    more = envelope.get("error")
    more = more if isinstance(more, dict) else {}
    raise ServiceError(
        str(envelope.get("message")), status, code, str(more.get("reason")), more.get("retryable") is True,
        retry_after, str(more.get("request_id")), more.get("details"),
    )  # fmt: skip


def _parse_envelope(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

"""What providers answer instead of a turn, in their own words, by protocol, status and flavour."""

from __future__ import annotations

from typing import Any

from model_requests import Protocol

_ANTHROPIC: dict[tuple[int, str | None], tuple[str, str]] = {
    (400, None): ("invalid_request_error", "messages: at least one message is required"),
    (400, "context"): ("invalid_request_error", "prompt is too long: 218749 tokens > 200000 maximum"),
    (400, "credit"): (
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
        "purchase credits.",
    ),
    (401, None): ("authentication_error", "invalid x-api-key"),
    (402, None): ("billing_error", "There is an issue with your billing or payment information."),
    (403, None): ("permission_error", "Your API key does not have permission to use the specified resource."),
    (404, None): ("not_found_error", "model: {model}"),
    (413, None): ("request_too_large", "Request exceeds the maximum size"),
    (429, None): ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    (500, None): ("api_error", "Internal server error"),
    (529, None): ("overloaded_error", "Overloaded"),
}
# (message, type, code)
_OPENAI: dict[tuple[int, str | None], tuple[str, str, str | None]] = {
    (400, None): ("Invalid value for 'messages'.", "invalid_request_error", "invalid_value"),
    (400, "context"): (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. "
        "Please reduce the length of the messages.",
        "invalid_request_error",
        "context_length_exceeded",
    ),
    (401, None): ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    (402, None): ("Insufficient credits.", "insufficient_credits", None),
    (403, None): (
        "Your project does not have access to model `{model}`.",
        "invalid_request_error",
        "model_not_found",
    ),
    (404, None): (
        "The model `{model}` does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
    ),
    (429, None): ("Rate limit reached for {model}. Please try again in 1s.", "tokens", "rate_limit_exceeded"),
    (429, "quota"): (
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "insufficient_quota",
    ),
    (500, None): ("The server had an error while processing your request. Sorry about that!", "server_error", None),
    (503, None): ("The engine is currently overloaded, please try again later", "service_unavailable_error", None),
    (529, None): ("Overloaded", "overloaded_error", None),
}


def error_body(protocol: Protocol, status: int, code: str | None, model: str) -> dict[str, Any]:
    """The body of an error. An unknown flavour is the plain one of its status; an unknown status says so itself."""
    if protocol == "anthropic-messages":
        kind, said = _ANTHROPIC.get((status, code)) or _ANTHROPIC.get((status, None)) or ("api_error", f"HTTP {status}")
        error = {"type": kind, "message": said.format(model=model)}
        return {"type": "error", "error": error, "request_id": "req_011CScripted"}
    found = _OPENAI.get((status, code)) or _OPENAI.get((status, None)) or (f"HTTP {status}", "api_error", None)
    message, kind, name = found
    return {"error": {"message": message.format(model=model), "type": kind, "param": None, "code": name}}

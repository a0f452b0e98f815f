"""Dynamic admission: webhooks that change or reject requests, as stored configurations describe them.

`WebhookDispatcher` tells whether a request concerns any webhook and calls them; `client` (imported where a server runs:
it loads an HTTP client) sends the reviews. The registry decides when both happen.
"""

from podlife.apiserver.admission.webhooks.configuration import ClientConfig, Webhook
from podlife.apiserver.admission.webhooks.dispatcher import Call, Concerned, WebhookDispatcher
from podlife.apiserver.admission.webhooks.errors import CallError
from podlife.apiserver.admission.webhooks.request import RequestTarget, ReviewedRequest, View, Views

__all__ = [
    "Call",
    "CallError",
    "ClientConfig",
    "Concerned",
    "RequestTarget",
    "ReviewedRequest",
    "View",
    "Views",
    "Webhook",
    "WebhookDispatcher",
]

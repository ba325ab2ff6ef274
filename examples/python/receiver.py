"""A receiver of webhooks to copy: verifies each signature before it reads the body, and prints what has come.

    SECRET=whsec_… python receiver.py 8033
"""

import base64
import hashlib
import hmac
import http.server
import os
import sys
import time

SECRET = base64.b64decode(os.environ["SECRET"].removeprefix("whsec_"))
LONGEST_BODY = 1024 * 1024
OLDEST = 300  # seconds


def is_signed(headers, body: bytes) -> bool:
    """Was this signed with the secret, less than five minutes ago? While a secret is rotated, two signatures come."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > OLDEST:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(signature, expected) for signature in signatures)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > LONGEST_BODY:
            return self.answer(413)
        body = self.rfile.read(length)
        if not is_signed(self.headers, body):
            return self.answer(401)
        # The id is the same at every attempt: what has been done under it is not done again.
        print(self.headers["webhook-id"], self.headers["recur-action-type"], body.decode(), flush=True)
        return self.answer(204)

    def answer(self, status: int):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()

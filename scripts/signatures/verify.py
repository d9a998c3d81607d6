# Verifies calls with what Python has: the published `standardwebhooks` where it is installed, otherwise `hmac`, and `cryptography`.
# With the argument `packages` it says which of the two packages it has, and ends.
import base64
import hashlib
import hmac
import importlib.util
import sys
import time


def has(package):
    return importlib.util.find_spec(package) is not None


if sys.argv[1:] == ["packages"]:
    print(" ".join(package for package in ("standardwebhooks", "cryptography") if has(package)))
    sys.exit()

if has("standardwebhooks"):
    from standardwebhooks.webhooks import Webhook
if has("cryptography"):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify_with_package(key, headers, body):
    Webhook(key).verify(body.decode(), headers)


def signed_content(headers, body):
    id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > 300:
        raise ValueError("too far away")
    return f"{id}.{timestamp}.".encode() + body


def values(headers, version):
    entries = [entry.partition(",") for entry in headers["webhook-signature"].split(" ")]
    return [base64.b64decode(value, validate=True) for name, _, value in entries if name == version]


def verify_with_hmac(key, headers, body):
    secret = base64.b64decode(key.removeprefix("whsec_"), validate=True)
    mac = hmac.digest(secret, signed_content(headers, body), hashlib.sha256)
    if not secret or not any(hmac.compare_digest(mac, value) for value in values(headers, "v1")):
        raise ValueError("no signature is right")


def verify_with_public_key(key, headers, body):
    public_key = Ed25519PublicKey.from_public_bytes(base64.b64decode(key.removeprefix("whpk_"), validate=True))
    content = signed_content(headers, body)
    for value in values(headers, "v1a"):
        try:
            return public_key.verify(value, content)
        except Exception:
            continue
    raise ValueError("no signature is right")


def verify(key, headers, body):
    if key.startswith("whpk_"):
        verify_with_public_key(key, headers, body)
    elif has("standardwebhooks"):
        verify_with_package(key, headers, body)
    else:
        verify_with_hmac(key, headers, body)


names = ("webhook-id", "webhook-timestamp", "webhook-signature")
for line in sys.stdin:
    key, *headers, body = line.rstrip("\n").split("\t")
    present = {name: value for name, value in zip(names, headers) if value != "-"}
    try:
        verify(key, present, base64.b64decode(body))
        print("accepted", flush=True)
    except Exception:
        print("refused", flush=True)

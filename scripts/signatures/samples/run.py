# Answers calls by the example of docs/receiving.md that lies in the working directory.
import base64
import os
import sys

sys.path.insert(0, os.getcwd())
from example import is_genuine

names = ("webhook-id", "webhook-timestamp", "webhook-signature")
for line in sys.stdin:
    key, *headers, body = line.rstrip("\n").split("\t")
    present = {name: value for name, value in zip(names, headers) if value != "-"}
    try:
        answer = is_genuine(key, present, base64.b64decode(body))
    except Exception:
        answer = False
    print("accepted" if answer is True else "refused", flush=True)

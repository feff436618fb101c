"""Prints, as JSON, what Python's email package reads from each message of a Maildir."""
import email
import email.policy
import json
import pathlib
import sys

mails = []
for file in sorted(pathlib.Path(sys.argv[1], "new").iterdir()):
    message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
    parts = [part for part in message.walk() if not part.is_multipart()]
    mails.append(
        {
            "headers": [[name, str(value)] for name, value in message.items()],
            "type": message.get_content_type(),
            "types": [part.get_content_type() for part in parts],
            "text": message.get_body(("plain",)).get_content(),
            "html": message.get_body(("html",)).get_content(),
            "defects": [repr(defect) for part in message.walk() for defect in part.defects]
            + [repr(defect) for name, value in message.items() for defect in value.defects],
        }
    )
json.dump(mails, sys.stdout)

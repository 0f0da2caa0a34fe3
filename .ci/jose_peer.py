"""2C2P's maintenance endpoint on a free port of 127.0.0.1, whose JOSE and XML were written by others. Prints the port.

    jose_peer.py MERCHANT_PUBLIC.pem GATEWAY_PRIVATE.pem

It opens what was signed by the merchant and encrypted to the gateway, and answers likewise from its side. A refund is
made once for each idempotencyID; `GET /counts` says how many were asked for and how many were made. An envelope that
cannot be opened is answered with 400 and a plain text, as 2C2P is said to do.
"""

import json
import sys
import threading
import xml.etree.ElementTree as xml
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from joserfc import jwe, jws
from joserfc.jwk import RSAKey

SIGNING = ["PS256"]
ENCRYPTION = ["RSA-OAEP", "A256GCM"]
# What each processType leaves the payment, or the refund, in.
STATUS = {"I": "S", "R": "RF", "RS": "S", "S": "RS", "V": "V"}


def read_key(path):
    with open(path, "rb") as file:
        return RSAKey.import_key(file.read())


merchant_key = read_key(sys.argv[1])
gateway_key = read_key(sys.argv[2])

lock = threading.Lock()
asked = Counter()
made = Counter()
answers = {}
refunds = {}


def open_envelope(token):
    signed = jws.deserialize_compact(token, merchant_key, algorithms=SIGNING)
    return jwe.decrypt_compact(signed.payload, gateway_key, algorithms=ENCRYPTION).plaintext


def seal(plaintext):
    encrypted = jwe.encrypt_compact({"alg": "RSA-OAEP", "enc": "A256GCM"}, plaintext, merchant_key, algorithms=ENCRYPTION)
    return jws.serialize_compact({"alg": "PS256", "typ": "JWT"}, encrypted, gateway_key, algorithms=SIGNING)


def answer(request):
    """The answer to a PaymentProcessRequest, as XML."""
    text = lambda name: request.findtext(name) or ""
    kind, invoice, key = text("processType"), text("invoiceNo"), text("idempotencyID")
    if request.tag != "PaymentProcessRequest" or kind not in STATUS:
        return document({"respCode": "11", "respDesc": "Not known here", "processType": kind})
    if key and key in answers and kind == "R":
        asked[key] += 1
        return answers[key]
    members = {
        "respCode": "00",
        "respDesc": "Success",
        "processType": kind,
        "invoiceNo": invoice,
        "amount": text("actionAmount"),
        "status": STATUS[kind],
        "idempotencyID": key,
    }
    rows = refunds.setdefault(invoice, [])
    if kind == "R":
        reference = str(3598743 + sum(made.values()))
        asked[key] += 1
        made[key] += 1
        rows.append({
            "amount": text("actionAmount"),
            "status": "RF",
            "referenceNo": reference,
            "dateTime": "20260901120000",
            "userDefined1": text("userDefined1"),
        })
        members["refundReferenceNo"] = reference
    result = document(members, rows if kind == "RS" else None)
    if kind == "R" and key:
        answers[key] = result
    return result


def document(members, rows=None):
    root = xml.Element("PaymentProcessResponse")
    for name, value in {"version": "4.3", **members}.items():
        if value:
            xml.SubElement(root, name).text = value
    if rows is not None:
        parent = xml.SubElement(root, "refundList")
        for row in rows:
            xml.SubElement(parent, "refund", row)
    return xml.tostring(root, encoding="utf-8", xml_declaration=True)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            request = xml.fromstring(open_envelope(body.strip()))
        except Exception as error:
            # Whatever it was: the one who tests wants to know.
            return self.reply(400, "text/plain", f"{type(error).__name__}: {error}".encode())
        with lock:
            result = answer(request)
        self.reply(200, "text/plain", seal(result).encode())

    def do_GET(self):
        if self.path != "/counts":
            return self.reply(404, "text/plain", b"")
        with lock:
            counts = json.dumps({"asked": asked, "made": made})
        self.reply(200, "application/json", counts.encode())

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
print(server.server_address[1], flush=True)
server.serve_forever()

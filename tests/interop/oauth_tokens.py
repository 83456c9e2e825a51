"""corbie and PyJWT judge the same tokens, good and bad, of all ways to sign.

What is made by design must be judged alike. Tokens with a letter changed anywhere may be refused by corbie alone, which
does not mend what it reads, but none may pass that PyJWT refuses.
"""

import base64
import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from checks import Checks
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from oauth_corbie import Corbie

RESOURCE = "https://mcp.example.org/mcp"
SKEW = 60
ALGORITHMS = ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
CHANGED_LETTERS = 300
SEED = 20260728


class Issuer:
    """Publishes the public halves of its keys, one for each way to sign."""

    def __init__(self) -> None:
        one_rsa = rsa.generate_private_key(65537, 2048)
        self.keys: dict[str, Any] = {
            "RS256": one_rsa,
            "RS512": rsa.generate_private_key(65537, 3072),
            "PS256": one_rsa,
            "ES256": ec.generate_private_key(ec.SECP256R1()),
            "ES384": ec.generate_private_key(ec.SECP384R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate(),
        }
        document = {"keys": [self.published(algorithm) for algorithm in ALGORITHMS]}
        self.known = {key.key_id: key for key in jwt.PyJWKSet.from_dict(document).keys}
        issuer = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/.well-known/openid-configuration":
                    found = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
                else:
                    found = document if self.path == "/keys" else None
                body = json.dumps(found).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def published(self, algorithm: str) -> dict[str, Any]:
        key = self.keys[algorithm].public_key()
        made = jwt.get_algorithm_by_name(algorithm).to_jwk(key, as_dict=True)
        return made | {"kid": algorithm, "alg": algorithm, "use": "sig"}

    def token(self, algorithm: str, claims: dict[str, Any], *, key: str | None = None, **head: Any) -> str:
        head = {"kid": algorithm, "typ": "at+jwt"} | head
        return jwt.encode(claims, self.keys[key or algorithm], algorithm, headers=head)

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        usual = {"iss": self.url, "aud": RESOURCE, "sub": "alice", "client_id": "app", "iat": now, "exp": now + 600}
        return {name: value for name, value in (usual | more).items() if value is not None}

    def accepts(self, token: str) -> str | None:
        """Why PyJWT refuses a token; none if it does not."""
        try:
            key = self.known[jwt.get_unverified_header(token)["kid"]]
            required = {"require": ["exp", "iss", "aud"]}
            jwt.decode(token, key, ALGORITHMS, required, audience=RESOURCE, issuer=self.url, leeway=SKEW)
        except (jwt.PyJWTError, KeyError, ValueError) as error:
            return repr(error)
        return None


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def designed(issuer: Issuer, algorithm: str) -> Iterator[tuple[str, str]]:
    """Tokens about which there can be no two opinions."""
    now = int(time.time())
    bodies: dict[str, dict[str, Any]] = {
        "good": {},
        "for several audiences": {"aud": ["https://other.example", RESOURCE]},
        "for another audience": {"aud": "https://other.example"},
        "for no audience": {"aud": []},
        "without an audience": {"aud": None},
        "of another issuer": {"iss": "https://other.example"},
        "without an issuer": {"iss": None},
        "expired": {"exp": now - 10 * SKEW},
        "expired a moment ago": {"exp": now - SKEW // 2},
        "without an end": {"exp": None},
        "valid later": {"nbf": now + 10 * SKEW},
        "valid in a moment": {"nbf": now + SKEW // 2},
        "issued later": {"iat": now + 10 * SKEW},
        "of a time that is no number": {"iat": "now"},
        "of a subject that is no text": {"sub": 7},
    }
    for name, more in bodies.items():
        yield name, issuer.token(algorithm, issuer.claims(**more))
    good = issuer.token(algorithm, issuer.claims())
    head, body, signature = good.split(".")
    yield "with another body", f"{head}.{encoded(json.dumps(issuer.claims(sub='root')).encode())}.{signature}"
    yield "without a signature", f"{head}.{body}."
    yield "with half a signature", f"{head}.{body}.{signature[: len(signature) // 8 * 4]}"
    yield "with the signature of another", f"{head}.{body}.{issuer.token(algorithm, issuer.claims(sub='bob')).split('.')[2]}"
    yield "of an unknown key", issuer.token(algorithm, issuer.claims(), kid="unknown")
    for other in ALGORITHMS:
        if other != algorithm:
            yield f"that names the key of {other}", issuer.token(algorithm, issuer.claims(), kid=other)
    yield "that demands what nobody knows", issuer.token(algorithm, issuer.claims(), crit=["x"], x=1)
    none = encoded(json.dumps({"alg": "none", "kid": algorithm}).encode())
    yield "of alg none", f"{none}.{body}."
    yield "signed with the public key", with_public_key(issuer, algorithm)


def with_public_key(issuer: Issuer, algorithm: str) -> str:
    """PyJWT does not sign so, which is why the secret is put in its place by hand."""
    public = issuer.keys[algorithm].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head = encoded(json.dumps({"alg": "HS256", "kid": algorithm, "typ": "JWT"}).encode())
    message = f"{head}.{encoded(json.dumps(issuer.claims()).encode())}"
    hmac = jwt.get_algorithm_by_name("HS256")
    return f"{message}.{encoded(hmac.sign(message.encode(), pem))}"


def changed(issuer: Issuer) -> Iterator[str]:
    """Good tokens with one letter changed, taken away or added."""
    chance = random.Random(SEED)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.="
    good = [issuer.token(algorithm, issuer.claims()) for algorithm in ALGORITHMS]
    for number in range(CHANGED_LETTERS):
        token = good[number % len(good)]
        place = chance.randrange(len(token))
        rest = token[place + chance.randint(0, 1) :]
        yield token[:place] + chance.choice(["", *letters]) + rest


def main() -> None:
    checks = Checks(prefix="oauth tokens")
    issuer = Issuer()
    with Corbie(sys.argv[1], {"issuer": issuer.url, "resource": RESOURCE}) as corbie:
        for algorithm in ALGORITHMS:
            passed = []
            for name, token in designed(issuer, algorithm):
                status, why = corbie.status(token), issuer.accepts(token)
                passed.append(status == 200)
                wanted = 200 if why is None else 401
                checks.that(status == wanted, f"{algorithm} {name}: {wanted}", f"corbie says {status}, PyJWT {why}")
            checks.that(sum(passed) == 4, f"{algorithm}: four of {len(passed)} are good", f"{sum(passed)} are")
        tokens = list(changed(issuer))
        wrong = [token for token in tokens if corbie.status(token) != 401 and issuer.accepts(token) is not None]
        checks.that(not wrong, f"none of {len(tokens)} tokens with a letter changed passes by itself", str(wrong[:3]))
    checks.exit()


if __name__ == "__main__":
    main()

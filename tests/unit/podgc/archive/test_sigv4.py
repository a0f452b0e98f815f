"""The examples that AWS's documentation of Signature Version 4 for S3 gives, with the signatures that it gives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podlife.podgc.archive.sigv4 import Keys, Signable, signed_headers

KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
HOST = {"host": "examplebucket.s3.amazonaws.com"}
NOW = datetime(2013, 5, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("request_", "names", "signature"),
    [
        (
            Signable("GET", "/test.txt", headers={**HOST, "range": "bytes=0-9"}),
            "host;range;x-amz-content-sha256;x-amz-date",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            Signable(
                "PUT",
                "/test$file.text",
                headers={
                    **HOST,
                    "date": "Fri, 24 May 2013 00:00:00 GMT",
                    "x-amz-storage-class": "REDUCED_REDUNDANCY",
                },
                body=b"Welcome to Amazon S3.",
            ),
            "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            Signable("GET", "/", {"lifecycle": ""}, HOST),
            "host;x-amz-content-sha256;x-amz-date",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            Signable("GET", "/", {"max-keys": "2", "prefix": "J"}, HOST),
            "host;x-amz-content-sha256;x-amz-date",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
    ids=["get object", "put object", "get lifecycle", "list objects"],
)
def test_a_request_of_the_documentation_gets_its_signature(
    request_: Signable, names: str, signature: str
) -> None:
    headers = signed_headers(request_, KEYS, "us-east-1", NOW)
    assert headers["authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={KEYS.access}/20130524/us-east-1/s3/aws4_request,"
        f"SignedHeaders={names},Signature={signature}"
    )
    assert headers["x-amz-date"] == "20130524T000000Z"


def test_a_lent_key_sends_its_token_and_signs_it() -> None:
    lent = Keys(KEYS.access, KEYS.secret, "token")
    headers = signed_headers(Signable("GET", "/", headers=HOST), lent, "us-east-1", NOW)
    assert headers["x-amz-security-token"] == "token"
    assert "x-amz-security-token," in headers["authorization"]


def test_no_secret_is_shown_by_accident() -> None:
    assert KEYS.secret not in repr(KEYS)
    assert "token" not in repr(Keys("a", "b", "token"))

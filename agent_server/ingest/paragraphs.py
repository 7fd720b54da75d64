"""Placeholder."""
import hashlib
import re
import unicodedata


def _norm(t): return " ".join(re.sub(r"[*_`>]","",unicodedata.normalize("NFKC",t)).casefold().split())
def passage_hash(text: str) -> bytes:
    return hashlib.sha256(_norm(text).encode()).digest()
def paragraph_hash(text: str) -> int | None:
    n=_norm(text)
    return None if len(n)<80 else int.from_bytes(hashlib.blake2b(n.encode(),digest_size=8).digest(),"big",signed=True)

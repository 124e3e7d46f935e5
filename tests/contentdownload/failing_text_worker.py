"""A text engine's worker that does what the file says: crash, hang, eat memory. Run by `test_validation_pool`."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from DocsToKG.ContentDownload.validation.pdf.worker import Request, answer_request, main


def answer(request: Request, descriptor: int) -> dict[str, Any]:
    said = os.pread(descriptor, 100, 0)
    if b"abort" in said:
        os.abort()
    if b"segfault" in said:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"exit" in said:
        os._exit(3)
    if b"hang" in said:
        time.sleep(60)
    if b"memory" in said:
        bytearray(1 << 40)
    if b"babble" in said:
        return {"pages": "x" * (8 << 20)}
    if b"nonsense" in said:
        return {"pages": 3}
    if b"pid" in said:
        return {"failure": "pid", "detail": str(os.getpid())}
    if b"environment" in said:
        return {"failure": "environment", "detail": " ".join(sorted(os.environ))}
    return answer_request(request, descriptor)


if __name__ == "__main__":
    raise SystemExit(main(answer))

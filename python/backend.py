# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel that pip installs: a few Python files, packed with the standard library alone, so
that installing needs no network and no compiler."""
import base64
import hashlib
import os
import zipfile

NAME, VERSION = "fathom_engine", "0.1.0"
INFO = f"{NAME}-{VERSION}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: fathom-engine
Version: {VERSION}
Summary: Run DeepSeek models from Python over libfathom
License: Apache-2.0
Requires-Python: >=3.9
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: fathom\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _files():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fathom")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as f:
                yield f"fathom/{name}", f.read()
    yield f"{INFO}/METADATA", METADATA.encode()
    yield f"{INFO}/WHEEL", WHEEL.encode()


def _record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    wheel, record = f"{NAME}-{VERSION}-py3-none-any.whl", ""
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in _files():
            out.writestr(name, data)
            record += _record(name, data)
        out.writestr(f"{INFO}/RECORD", record + f"{INFO}/RECORD,,\n")
    return wheel

"""Small distributions made on the spot, and installed ones packed again: no index is asked."""

import hashlib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

RUNNER = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")


def wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    *,
    entry_points: str = "",
    requires: tuple[str, ...] = (),
) -> Path:
    """A pure wheel; a key may lead into `NAME-VERSION.data/`."""
    meta = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {it}\n" for it in requires)
    inside: dict[str, str | bytes] = {
        **files,
        f"{meta}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{meta}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if entry_points:
        inside[f"{meta}/entry_points.txt"] = entry_points
    return _zipped(folder / f"{name}-{version}-py3-none-any.whl", inside, f"{meta}/RECORD")


def installed(folder: Path, *names: str) -> None:
    """As a wheel again, without its scripts and bytecode."""
    for name in names:
        it = distribution(name)
        inside: dict[str, str | bytes] = {}
        for file in it.files or ():
            path = str(file)
            if not path.startswith("..") and "__pycache__" not in path and "RECORD" not in path:
                inside[path] = Path(str(file.locate())).read_bytes()
        meta = next(path.partition("/")[0] for path in inside if path.endswith("/METADATA"))
        plain = name.replace("-", "_")
        target = folder / f"{plain}-{it.version}-py3-none-any.whl"
        _zipped(target, inside, f"{meta}/RECORD")


def _zipped(target: Path, inside: Mapping[str, str | bytes], record: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path, content in inside.items():
            data = content.encode() if isinstance(content, str) else content
            seen = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={seen},{len(data)}")
            file.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data)
        file.writestr(zipfile.ZipInfo(record, (2020, 1, 1, 0, 0, 0)), "\n".join(lines))
    return target

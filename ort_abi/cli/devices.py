"""`ort-abi devices`: what execution providers there are, and on which devices."""

from __future__ import annotations

import argparse
import json
from typing import Any

import ort_abi
from ort_abi.cli._common import add_shared_options, inject_devices, print_table, register_libraries

__all__ = ["add_parser", "main"]


def add_parser(commands: Any) -> None:
    """Adds the subcommand."""
    parser = commands.add_parser("devices", help="list execution providers and their devices")
    add_shared_options(parser)
    parser.set_defaults(main=main)


def main(arguments: argparse.Namespace) -> None:
    """Prints a table of all EP devices."""
    inject_devices(arguments.device)
    register_libraries(arguments.ep)
    devices = ort_abi.get_ep_devices()
    if arguments.json:
        print(json.dumps([_as_json(device) for device in devices], indent=2))
        return
    header = ("EP", "EP VENDOR", "DEVICE", "VENDOR", "VENDOR ID", "DEVICE ID", "METADATA")
    rows = []
    for device in devices:
        hardware = device.device
        ids = (f"{hardware.vendor_id:#06x}", f"{hardware.device_id:#06x}")
        metadata = " ".join(f"{key}={value}" for key, value in device.ep_metadata.items())
        rows.append((device.ep_name, device.ep_vendor, hardware.type.name, hardware.vendor, *ids, metadata))
    print_table(header, rows)
    if not arguments.ep:
        print("\n--ep LIB loads an EP library, for example one of the package nxrt-ep-cpu.")


def _as_json(device: ort_abi.OrtEpDevice) -> dict[str, Any]:
    hardware = device.device
    return {
        "ep_name": device.ep_name,
        "ep_vendor": device.ep_vendor,
        "ep_metadata": device.ep_metadata,
        "ep_options": device.ep_options,
        "device": {
            "type": hardware.type.name,
            "vendor": hardware.vendor,
            "vendor_id": hardware.vendor_id,
            "device_id": hardware.device_id,
            "metadata": hardware.metadata,
        },
    }

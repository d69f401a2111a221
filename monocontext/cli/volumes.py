"""The commands `volume ...`: list, create and remove volumes, which are named folders."""

from __future__ import annotations

from typing import Annotated

from monocontext.cli.help import CommandGroup
from monocontext.cli.objects import print_removed
from monocontext.cli.options import S3, AsJson, open_store_at
from monocontext.cli.parameters import Argument
from monocontext.cli.printing import print_line, print_record
from monocontext.errors import AlreadyExists, NotFound
from monocontext.stores.volumes import Volumes, volumes_url

VolumeName = Annotated[str, Argument(metavar="NAME", help="The name of a volume.")]


def list_volumes(s3: S3, as_json: AsJson = False) -> None:
    """List the volumes by name."""
    with open_store_at(volumes_url(), s3) as store:
        for name in Volumes(store).names():
            print_record(as_json, {"name": name}, name)


def create(name: VolumeName, s3: S3) -> None:
    """Create an empty volume. Fails if the volume exists."""
    with open_store_at(volumes_url(), s3) as store:
        volumes = Volumes(store)
        if volumes.exists(name):
            raise AlreadyExists(f"volume {name!r} already exists in {store.url}: choose another name")
        volumes.create(name)
        print_line(f"{store.url.rstrip('/')}/{name}: created")


def remove(name: VolumeName, s3: S3) -> None:
    """Remove a volume with all its files."""
    with open_store_at(volumes_url(), s3) as store:
        volumes = Volumes(store)
        if not volumes.exists(name):
            raise NotFound(f"no volume {name!r} in {store.url}: `monocontext volume list` lists them")
        left_out = list[str]()
        print_removed(store, f"{store.url.rstrip('/')}/{name}", volumes.remove(name, left_out), left_out)


app = CommandGroup(
    "List, create and remove volumes: named folders below MONOCONTEXT_VOLUMES, which an Interpreter mounts.",
    {"list": list_volumes, "create": create, "rm": remove},
)

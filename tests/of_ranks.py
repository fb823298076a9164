"""One rank of several: what ``test_ranks.py`` starts as processes.

    python tests/of_ranks.py FOLDER RANK COUNT TASK

The ranks meet by a file in the folder; what a rank found is written there as JSON.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
import torch.distributed as dist

WAIT = timedelta(seconds=60)
FOLDER = "folder_of_ranks"  # the package that the modules of one are


def module_at(path: Path):
    package = sys.modules[FOLDER] = ModuleType(FOLDER)
    package.__path__ = [str(path.parent)]
    return importlib.import_module(f"{FOLDER}.{path.stem}")


def gallery(folder: Path, rank: int, count: int) -> dict[str, float]:
    """Every case on 1, 2, ... ranks: how far this one is from its parts."""
    from codegen.targets.torch.shard_check import cases, in_chunks
    from derive import forward_from

    groups = [dist.new_group(range(n)) for n in range(1, count + 1)]
    found: dict[str, float] = {}
    for path in sorted(folder.glob("*.pkl")):
        name, program, sharded = pickle.loads(path.read_bytes())
        module = module_at(folder / f"{sharded.program.name}.py")
        for case in cases(forward_from(name).definition, program, sharded):
            if sharded.groups.ring:
                case = replace(case, compute=partial(in_chunks, chunk=2))
            ranks = len(case.cut.shares)
            if rank < ranks:
                apart = case.difference(module, [groups[ranks - 1]], [rank])
                found[path.stem] = max(found.get(path.stem, 0.0), apart)
    return found


TASKS = {"gallery": gallery}


def main(folder: Path, rank: int, count: int, task: str) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / f"store_{task}"), count)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=count, timeout=WAIT)
    found = TASKS[task](folder, rank, count)
    (folder / f"found_{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    from of_ranks_tasks import TASKS as MORE

    TASKS |= MORE
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])

"""Python text that programs are given when they need it, so that the result depends on PyTorch alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Snippet:
    """`imports`: the modules that the text uses. `needs`: the snippets that it uses."""

    text: str
    imports: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


_ATTENTION: Final = '''
class Attention(nn.MultiheadAttention):
    """One input attends to itself, two are query and key, three are query, key and value."""

    def __init__(self, *sizes, batch_first=True, causal=False, **options):
        super().__init__(*sizes, batch_first=batch_first, **options)
        self.causal = causal

    def forward(self, query, key=None, value=None, **options):
        key = query if key is None else key
        value = key if value is None else value
        if self.causal:
            length = query.shape[-2] if self.batch_first else query.shape[0]
            later = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
            options.setdefault("attn_mask", later)
        options["need_weights"] = False
        return super().forward(query, key, value, **options)[0]
'''

_LOAD_IMAGES: Final = '''
def load_images(name, shape):
    """A data set of torchvision that lies below $TENSORLOOM_DATA or data/; None if it does not."""
    try:
        from torchvision import datasets
    except ImportError:
        return None
    kinds = {
        "mnist": datasets.MNIST,
        "fashion_mnist": datasets.FashionMNIST,
        "cifar10": datasets.CIFAR10,
        "cifar100": datasets.CIFAR100,
    }
    try:
        found = kinds[name](os.environ.get("TENSORLOOM_DATA", "data"), train=True)
    except RuntimeError:
        return None
    pixels = torch.as_tensor(found.data).float() / 255
    pixels = pixels.unsqueeze(1) if pixels.dim() == 3 else pixels.permute(0, 3, 1, 2)
    return TensorDataset(pixels.reshape(-1, *shape), torch.as_tensor(found.targets))
'''

_LOAD_DATASET: Final = '''
def load_dataset(
    name=None,
    batch_size=64,
    shuffle=True,
    num_samples=1000,
    seed=0,
    shapes=((1,),),
    kinds=("float",),
    vocabulary=2,
    target=(),
    classes=0,
):
    """Batches of the named data set, or of synthetic samples that a model can learn."""
    samples = load_images(name, shapes[0]) if name else None
    if samples is None:
        generator = torch.Generator().manual_seed(seed)
        task = torch.Generator().manual_seed(0)  # the same for every seed
        inputs = []
        for shape, kind in zip(shapes, kinds):
            if kind == "int":
                # Each sequence counts on from a random number.
                start = torch.randint(vocabulary, (num_samples, 1), generator=generator)
                steps = torch.arange(math.prod(shape)).reshape(1, -1)
                inputs.append(((start + steps) % vocabulary).reshape(num_samples, *shape))
            else:
                inputs.append(torch.randn(num_samples, *shape, generator=generator))
        flat = inputs[0].reshape(num_samples, -1)
        size = math.prod(target)
        if classes and kinds[0] == "int" and size == flat.shape[1]:
            targets = (flat + 1) % min(vocabulary, classes)
        elif classes and kinds[0] == "int":
            targets = flat[:, :1].expand(-1, size) % classes
        elif classes and size == 1:
            targets = torch.randint(classes, (num_samples,), generator=generator)
            inputs[0] += torch.randn(classes, *shapes[0], generator=task)[targets]
        else:
            mixing = torch.randn(flat.shape[1], size * max(classes, 1), generator=task)
            values = flat.float() @ mixing / flat.shape[1] ** 0.5
            targets = values.reshape(num_samples, size, -1).argmax(-1) if classes else values
        samples = TensorDataset(*inputs, targets.reshape(num_samples, *target))
    order = torch.Generator().manual_seed(seed)
    return DataLoader(samples, batch_size, shuffle=shuffle, generator=order, collate_fn=as_batch)


def as_batch(samples):
    """The inputs, several of them as a list, and the targets of some samples."""
    *inputs, targets = (torch.stack(parts) for parts in zip(*samples))
    return (inputs[0] if len(inputs) == 1 else inputs), targets
'''

_BATCHES_OF: Final = '''
def batches_of(data, batch_size=None, shuffle=None):
    """A data set, or the data set of a loader, in batches of another size or order; other data as it is."""
    if isinstance(data, DataLoader):
        size = data.batch_size if batch_size is None else batch_size
        if shuffle is None:
            shuffle = isinstance(data.sampler, torch.utils.data.RandomSampler)
        return DataLoader(
            data.dataset,
            size,
            shuffle=shuffle,
            generator=data.generator,
            collate_fn=data.collate_fn,
        )
    if isinstance(data, torch.utils.data.Dataset):
        return DataLoader(data, batch_size or 64, shuffle=shuffle is not False)
    return data
'''

_START_PROCESSES: Final = '''
def start_processes():
    """Join the processes that a launcher such as torchrun has started; without one this is the only process."""
    backend, on = ("nccl", device) if device.type == "cuda" else ("gloo", None)
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group(backend, device_id=on)
    else:
        store = dist.HashStore()
        dist.init_process_group(backend, store=store, rank=0, world_size=1, device_id=on)
'''

_SHARE_OF: Final = '''
class Shares:
    """This process's part of each batch of a list."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        mine = slice(rank, None, world_size)
        for inputs, targets in self.batches:
            several = isinstance(inputs, (list, tuple))
            yield [part[mine] for part in inputs] if several else inputs[mine], targets[mine]


def share_of(data, batch_size=None, shuffle=None):
    """This process's part of a loader, a data set or a list of batches. All parts of a batch together have its size."""
    collate = None
    if isinstance(data, DataLoader):
        batch_size = batch_size or data.batch_size
        if shuffle is None:
            shuffle = isinstance(data.sampler, torch.utils.data.RandomSampler)
        collate, data = data.collate_fn, data.dataset
    elif not isinstance(data, torch.utils.data.Dataset):
        return Shares(data)
    sampler = DistributedSampler(data, shuffle=shuffle is not False)
    size = max(1, (batch_size or 64) // world_size)
    return DataLoader(data, size, sampler=sampler, collate_fn=collate)
'''

_SNAPSHOTS: Final = '''
def save_snapshot(path, model, optimizer, scheduler, scaler, epoch, step):
    """Write all that training needs to go on later. Keys are those of the plain model."""
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    states = {name: part.state_dict() for name, part in parts.items() if part is not None}
    torch.save({**states, "epoch": epoch, "step": step}, path)


def load_snapshot(path, model, optimizer, scheduler, scaler):
    """Go on from a snapshot, or with True from the newest, if there is one; the epoch and step that it was made in."""
    if path is True:
        found = sorted(glob.glob("checkpoint_*.pt"), key=os.path.getmtime)
        if not found:
            return 0, 0
        path = found[-1]
    states = torch.load(path, map_location=device)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    for name, part in parts.items():
        if part is not None and name in states:
            part.load_state_dict(states[name])
    return states["epoch"], states["step"]
'''

_RECOMPUTE: Final = '''
def recompute_activations(model, kinds):
    """Keep only the inputs of the models inside a model, or of itself, and compute the rest again when going back."""
    inner = [part for part in model.modules() if isinstance(part, kinds) and part is not model]
    for part in inner or [model]:
        part.forward = partial(checkpoint, part.forward, use_reentrant=False)
'''

_PROGRESS: Final = '''
def show_progress(batches, label):
    """Pass the batches on, with a bar on stderr."""
    total = len(batches) if hasattr(batches, "__len__") else 0
    for i, batch in enumerate(batches, 1):
        yield batch
        filled = 30 * i // total if total else 0
        sys.stderr.write(f"\\r{label} [{'#' * filled}{'.' * (30 - filled)}] {i}/{total or '?'}")
        sys.stderr.flush()
    sys.stderr.write("\\n")
'''

_LOADER: Final = ("from torch.utils.data import DataLoader, TensorDataset",)
SNIPPETS: Final = {
    "Attention": Snippet(_ATTENTION, ("from torch import nn",)),
    "load_images": Snippet(_LOAD_IMAGES, ("import os", "from torch.utils.data import TensorDataset")),
    "load_dataset": Snippet(_LOAD_DATASET, ("import math", *_LOADER), ("load_images",)),
    "batches_of": Snippet(_BATCHES_OF, ("from torch.utils.data import DataLoader",)),
    "start_processes": Snippet(_START_PROCESSES, ("import os", "import torch.distributed as dist")),
    "share_of": Snippet(_SHARE_OF, ("from torch.utils.data import DataLoader, DistributedSampler",)),
    "save_snapshot": Snippet(_SNAPSHOTS, ("import glob", "import os")),
    "recompute_activations": Snippet(
        _RECOMPUTE, ("from functools import partial", "from torch.utils.checkpoint import checkpoint")
    ),
    "show_progress": Snippet(_PROGRESS, ("import sys",)),
}
"""In the order in which they stand in a program."""


def needed(names: dict[str, None]) -> list[Snippet]:
    """The snippets of these names and those they need, in the order of SNIPPETS."""
    wanted = set(names)
    for name in list(wanted):
        wanted.update(SNIPPETS[name].needs)
    return [snippet for name, snippet in SNIPPETS.items() if name in wanted]

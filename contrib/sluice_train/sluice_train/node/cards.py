"""The cards of this node and what they tell, through NVML (pynvml: docs/adr/0016).

Only the node tools put `KIT/lib` on their path, so that a person's own environment keeps its own.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

KIT_LIBRARIES = Path(__file__).resolve().parents[2] / "lib"
NUMA_WORDS = 16  # of 64 nodes each


class Doubt(Exception):
    """What the machine tells cannot be relied on; the text says why."""


@dataclass(frozen=True)
class Card:
    """One card. `bus` sorts as CUDA_DEVICE_ORDER=PCI_BUS_ID does; `numa` is None when untold."""

    uuid: str
    bus: str
    numa: int | None
    mig: bool


@dataclass(frozen=True)
class Machine:
    """The cards that this process may use, by bus id, and how each two of them are joined.

    `links[a, b]` with a < b is the best way between them in the words of nvidia-smi: NV4 (four
    NVLinks), PIX (one PCIe switch), PXB (several), PHB (host bridge), NODE (NUMA node), SYS.
    """

    cards: tuple[Card, ...]
    links: Mapping[tuple[int, int], str]


class Nvml:
    """NVML, opened by `with`. ImportError: no pynvml; `Nvml.error`: the library refuses."""

    def __init__(self) -> None:
        if KIT_LIBRARIES.is_dir() and str(KIT_LIBRARIES) not in sys.path:
            sys.path.insert(0, str(KIT_LIBRARIES))
        self._nvml: Any = import_module("pynvml")
        self.error: type[Exception] = self._nvml.NVMLError

    def __enter__(self) -> Nvml:
        try:
            self._nvml.nvmlInit()
        except self.error as refused:
            raise Doubt(f"NVML does not start: {refused}") from refused
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self.error:
            return  # nothing is lost: the process ends now

    def handles(self) -> list[tuple[str, Any]]:
        """Bus id and handle of each card that a device cgroup leaves visible, by bus id."""
        found = []
        for index in range(self._nvml.nvmlDeviceGetCount()):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            except self.error as refused:
                if _code(refused) == self._nvml.NVML_ERROR_NO_PERMISSION:
                    continue
                raise
            found.append((_bus(self._nvml.nvmlDeviceGetPciInfo(handle)), handle))
        return sorted(found, key=lambda pair: pair[0])

    def slice(self, uuid: str) -> Any:
        """The handle of a MIG slice."""
        return self._nvml.nvmlDeviceGetHandleByUUID(uuid.encode())

    def uuid(self, handle: Any) -> str:
        """As CUDA_VISIBLE_DEVICES takes it: GPU-…"""
        return str(self._nvml.nvmlDeviceGetUUID(handle))

    def machine(self) -> Machine:
        """All visible cards and their links. Doubt: one of the answers was an error."""
        try:
            handles = self.handles()
            cards = [self._card(bus, handle) for bus, handle in handles]
            return Machine(tuple(cards), self._links(handles))
        except self.error as refused:
            raise Doubt(f"NVML says: {refused}") from refused

    def sample(self, handle: Any) -> dict[str, float | None]:
        """What the contract's telemetry holds of a card; None for what it does not tell.

        Percent, bytes, watts, MHz (of the multiprocessors), uncorrected errors since boot, and
        the number of compute processes.
        """
        nvml = self._nvml
        memory = self._told(nvml.nvmlDeviceGetMemoryInfo, handle)
        load = self._told(nvml.nvmlDeviceGetUtilizationRates, handle)
        power = self._told(nvml.nvmlDeviceGetPowerUsage, handle)
        running = self._told(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        errors = nvml.nvmlDeviceGetTotalEccErrors
        kinds = (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
        return {
            "util": None if load is None else load.gpu,
            "mem": None if memory is None else memory.used,
            "mem_total": None if memory is None else memory.total,
            "power": None if power is None else round(power / 1000, 1),
            "clock": self._told(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            "ecc": self._told(errors, handle, *kinds),
            "procs": None if running is None else len(running),
        }

    def _told(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return ask(*arguments)
        except self.error:
            return None

    def _card(self, bus: str, handle: Any) -> Card:
        nodes = self._told(
            self._nvml.nvmlDeviceGetMemoryAffinity,
            handle,
            NUMA_WORDS,
            self._nvml.NVML_AFFINITY_SCOPE_NODE,
        )
        return Card(self.uuid(handle), bus, _lowest_bit(nodes), self._mig(handle))

    def _mig(self, handle: Any) -> bool:
        nvml = self._nvml
        try:
            now, _ = nvml.nvmlDeviceGetMigMode(handle)
        except self.error as refused:
            # a card, or a driver, from before MIG
            if _code(refused) in (
                nvml.NVML_ERROR_NOT_SUPPORTED,
                nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            ):
                return False
            raise
        return bool(now != nvml.NVML_DEVICE_MIG_DISABLE)

    def _links(self, handles: list[tuple[str, Any]]) -> dict[tuple[int, int], str]:
        nvlinks = [self._nvlinks(handle) for _, handle in handles]
        found = {}
        for second, (bus, other) in enumerate(handles):
            for first, (_, handle) in enumerate(handles[:second]):
                straight = nvlinks[first].get(bus, 0)
                switched = min(nvlinks[first].get("", 0), nvlinks[second].get("", 0))
                count = straight or switched
                found[first, second] = f"NV{count}" if count else self._pcie(handle, other)
        return found

    def _nvlinks(self, handle: Any) -> dict[str, int]:
        """Active NVLinks by the bus id of the card at their other end; "" for those to a switch."""
        nvml = self._nvml
        counts: dict[str, int] = {}
        for link in range(nvml.NVML_NVLINK_MAX_LINKS):
            try:
                active = nvml.nvmlDeviceGetNvLinkState(handle, link)
            except self.error as refused:
                # a card without NVLink, or with fewer than this
                if _code(refused) in (
                    nvml.NVML_ERROR_NOT_SUPPORTED,
                    nvml.NVML_ERROR_INVALID_ARGUMENT,
                ):
                    break
                raise
            if active:
                end = self._end(handle, link)
                counts[end] = counts.get(end, 0) + 1
        return counts

    def _end(self, handle: Any, link: int) -> str:
        kind = self._nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link)
        if kind == self._nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            return ""
        return _bus(self._nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))

    def _pcie(self, handle: Any, other: Any) -> str:
        nvml = self._nvml
        names = {
            nvml.NVML_TOPOLOGY_INTERNAL: "PIX",
            nvml.NVML_TOPOLOGY_SINGLE: "PIX",
            nvml.NVML_TOPOLOGY_MULTIPLE: "PXB",
            nvml.NVML_TOPOLOGY_HOSTBRIDGE: "PHB",
            nvml.NVML_TOPOLOGY_NODE: "NODE",
            nvml.NVML_TOPOLOGY_SYSTEM: "SYS",
        }
        level = nvml.nvmlDeviceGetTopologyCommonAncestor(handle, other)
        if level not in names:
            raise Doubt(f"two cards are joined in an unknown way ({level})")
        return names[level]


def _code(error: Exception) -> int:
    return int(getattr(error, "value", -1))


def _bus(pci: Any) -> str:
    return f"{pci.domain:08x}:{pci.bus:02x}:{pci.device:02x}"


def _lowest_bit(words: Any) -> int | None:
    mask = sum(word << (64 * at) for at, word in enumerate(words or ()))
    return (mask & -mask).bit_length() - 1 if mask else None

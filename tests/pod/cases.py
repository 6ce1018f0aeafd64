"""cases.py - who runs out of memory in the pods: programs of tests/scenarios that write no files,
whose expect.json is the label, each with the limit of its container in MiB. `few`
are in the default tests."""
import dataclasses


@dataclasses.dataclass
class Case:
    """`pod`: followed (recorder and sidecar: packaging/kubernetes/example), message (whyoom run
    with SYS_RESOURCE: termination-message.yaml) or next (the same without that right, so that the
    next start says it)."""
    program: str
    limit: int
    pod: str
    few: bool = False
    then: str = ""  # what the container runs after its restart, and dies of, too
    open: str = ""  # why it is known to be judged wrongly; it is played, and does not count
    neighbour: int = 0  # MiB of its limit that a program beside it fills, which is not recorded


CASES = [
    Case("dialogue_py", 96, "followed", few=True),
    Case("queue_unbounded_py", 192, "followed", then="history_py"),
    Case("turns_py", 128, "followed"),
    Case("tiles_py", 128, "followed"),
    Case("memo_py", 160, "followed", open="a leak, by the sample"),
    Case("catalogue_py", 192, "followed", open="a leak, by the sample"),
    Case("history_py", 160, "followed"),
    Case("tensors_c", 160, "followed"),
    Case("connections_cpp", 96, "followed"),
    Case("snapshots_c", 160, "followed"),
    Case("neighbour_c", 256, "followed", neighbour=226,
         open="what the program beside it holds is not seen from the traces alone"),
    Case("leak_c", 128, "message"),
    Case("layers_cpp", 224, "message"),
    Case("connections_cpp", 96, "message"),
    Case("slots_c", 256, "message"),
    Case("history_c", 160, "message"),
    Case("sessions_cpp", 96, "message"),
    Case("inflate_c", 256, "next"),
    Case("chapters_c", 160, "next", few=True),
    Case("small_objects_py", 128, "next"),
]

"""Wait until every node of a run is there with its devices, and say who is missing if not.

Arguments: Ray's address, nodes, Ray's name of the device ("" for none), devices on each, seconds.
It stands in the generated scripts: only Ray and the standard library are at hand there.
"""

import sys
import time

import ray


def main(address: str, nodes: int, device: str, per_node: int, limit: float) -> str:
    """Why the run cannot start; empty once it can."""
    deadline = time.monotonic() + limit
    while not joined(address):
        if time.monotonic() > deadline:
            return f"after {limit:.0f} s Ray at {address} does not take a driver; see its log."
        time.sleep(2)
    while True:
        have = sorted(
            (str(node["NodeManagerAddress"]), int(node["Resources"].get(device, 0)))
            for node in ray.nodes()
            if node["Alive"]
        )
        ready = sum(count >= per_node or not device for _, count in have)
        if ready >= nodes:
            return ""
        if time.monotonic() > deadline:
            return missing(have, ready, nodes, device, per_node, limit)
        time.sleep(2)


def joined(address: str) -> bool:
    """Whether Ray takes us as a driver; its GCS answers before the node beside it is ready."""
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except ConnectionError:
        return False
    return True


def missing(
    have: list[tuple[str, int]], ready: int, nodes: int, device: str, per_node: int, limit: float
) -> str:
    """One line: who came, with what, and how many did not."""
    wanted = f"{nodes} nodes with {per_node} {device} each" if device else f"{nodes} nodes"
    came = ", ".join(f"{ip} ({n} {device})" if device else ip for ip, n in have)
    return (
        f"after {limit:.0f} s the cluster is incomplete: {ready} of {wanted}. There are: {came}. "
        f"Missing: {nodes - ready}. Look at the log of each node that is not in this list, or has "
        "too few."
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(
        main(arguments[0], int(arguments[1]), arguments[2], int(arguments[3]), float(arguments[4]))
        or 0
    )

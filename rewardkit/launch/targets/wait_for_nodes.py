"""Wait until every node of a run has joined Ray with its devices; report missing nodes.

Arguments: Ray's address, the number of nodes, Ray's name of the device ("" for CPUs), devices per
node, the timeout in seconds. The generated scripts contain this file, so it may import only Ray and
the standard library.
"""

import sys
import time

import ray


def main(address: str, nodes: int, device: str, per_node: int, limit: float) -> str:
    """Wait for all nodes; return "" once the run can start, else the reason why it cannot."""
    deadline = time.monotonic() + limit
    while not accepts_driver(address):
        if time.monotonic() > deadline:
            return f"after {limit:.0f} s Ray at {address} does not accept a driver; see its log."
        time.sleep(2)
    while True:
        members = sorted(
            (str(node["NodeManagerAddress"]), int(node["Resources"].get(device, 0)))
            for node in ray.nodes()
            if node["Alive"]
        )
        ready = sum(count >= per_node or not device for _, count in members)
        if ready >= nodes:
            return ""
        if time.monotonic() > deadline:
            return describe_missing(members, ready, nodes, device, per_node, limit)
        time.sleep(2)


def accepts_driver(address: str) -> bool:
    """Whether Ray accepts a driver; its GCS answers before its node is ready."""
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except ConnectionError:
        return False
    return True


def describe_missing(
    members: list[tuple[str, int]], ready: int, nodes: int, device: str, per_node: int, limit: float
) -> str:
    """Return one line: which nodes joined with how many devices, and how many are missing."""
    wanted = f"{nodes} nodes with {per_node} {device} each" if device else f"{nodes} nodes"
    joined_nodes = ", ".join(f"{ip} ({n} {device})" if device else ip for ip, n in members)
    return (
        f"after {limit:.0f} s the cluster is incomplete: {ready} of {wanted}. Joined: {joined_nodes}. "
        f"Missing: {nodes - ready}. Read the log of each node that has not joined, or has too few devices."
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(
        main(arguments[0], int(arguments[1]), arguments[2], int(arguments[3]), float(arguments[4]))
        or 0
    )

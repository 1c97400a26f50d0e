"""mlx_links.py RANK RANKS FOLDER SIZES - all_reduces of MLX's ring over TCP on the loopback, for `cohort bench links`.

Rank 0 prints "cohort-peer all_reduce BYTES NANOSECONDS", the median of the rounds. With FOLDER alone it says whether MLX is there.
"""
import json
import os
import statistics
import sys
import time

ROUNDS = 5


def repeats_of(size):
    return 100 if size <= 64 << 10 else 10 if size <= 1 << 20 else 2


def join(rank, ranks, folder):
    """Ports are those that the folder's number gives, so that runs one behind the other do not meet."""
    import mlx.core as mx

    base = 20000 + int(os.path.basename(folder).rsplit("-", 1)[-1]) * 37 % 9000
    hosts = os.path.join(folder, f"hosts-{rank}.json")
    with open(hosts, "w", encoding="utf-8") as file:
        json.dump([[f"127.0.0.1:{base + i}"] for i in range(ranks)], file)
    os.environ["MLX_RANK"] = str(rank)
    os.environ["MLX_HOSTFILE"] = hosts
    mx.set_default_device(mx.cpu)
    return mx, mx.distributed.init(strict=True, backend="ring")


def time_all_reduce(mx, group, size):
    source = mx.zeros((size // 4,), dtype=mx.float32)
    mx.eval(source)
    times = []
    for round_number in range(-1, ROUNDS):
        repeats = 1 if round_number < 0 else repeats_of(size)
        mx.eval(mx.distributed.all_sum(mx.zeros((1,)), group=group))
        start = time.perf_counter_ns()
        for _ in range(repeats):
            mx.eval(mx.distributed.all_sum(source, group=group))
        if round_number >= 0:
            times.append((time.perf_counter_ns() - start) / repeats)
    return statistics.median(times)


def main():
    if len(sys.argv) == 2:
        import mlx.core as mx

        print("cohort-peer version MLX", mx.__version__)
        return
    rank, ranks, folder, sizes = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    mx, group = join(rank, ranks, folder)
    if rank == 0:
        print("cohort-peer version MLX", mx.__version__, "its ring")
    for size in map(int, sizes.split(",")):
        each = time_all_reduce(mx, group, size)
        if rank == 0:
            print(f"cohort-peer all_reduce {size} {each:.3f}", flush=True)


if __name__ == "__main__":
    main()

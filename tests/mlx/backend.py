"""Cohort as a back end of MLX: every operation of mlx.core.distributed on a group of cohort_mlx's, and what MLX's own
ring has not: splits, messages to any rank, sums scattered, all_to_all. Run by backend_test.sh, with 4 ranks."""

import sys

import mlx.core as mx

import cohort_mlx

group = cohort_mlx.init()
rank, size = group.rank(), group.size()


def check(holds, what):
    if not holds:
        sys.exit(f"rank {rank}: not so: {what}")


def same(array, expected, what):
    expected = mx.array(expected, dtype=array.dtype)
    check(array.shape == expected.shape and mx.array_equal(array, expected).item(), f"{what}: {array} is not {expected}")


def differ():
    """Ranks that differ in their call get both sides' values, where MLX's ring mixes up bytes or hangs."""
    try:
        mx.eval(mx.distributed.all_sum(mx.ones((3 if rank == 1 else 4,)), group=group))
        check(False, "unequal counts were taken")
    except RuntimeError as error:
        check("sum of 3 f32" in str(error) and "sum of 4 f32" in str(error), str(error))
    try:
        cohort_mlx.finalize()
        check(False, "a world whose calls differed was finalized in order")
    except RuntimeError:
        sys.exit(0)


if sys.argv[1:] == ["differ"]:
    differ()
check(isinstance(group, mx.distributed.Group), "it is a group of MLX's")
total = size * (size - 1) // 2

for dtype in (mx.int8, mx.int32, mx.uint64, mx.float16, mx.bfloat16, mx.float32):
    x = mx.arange(10).astype(dtype) + rank
    same(mx.distributed.all_sum(x, group=group), [i * size + total for i in range(10)], f"all_sum of {dtype}")
    same(mx.distributed.all_max(x, group=group), [i + size - 1 for i in range(10)], f"all_max of {dtype}")
    same(mx.distributed.all_min(x, group=group), list(range(10)), f"all_min of {dtype}")
    same(mx.distributed.all_gather(x, group=group), [i + r for r in range(size) for i in range(10)], f"all_gather of {dtype}")

large = mx.full((1 << 20,), float(rank + 1))
check((mx.distributed.all_sum(large, group=group) == size * (size + 1) / 2).all().item(), "all_sum of 4 MiB")

z = mx.array([complex(rank, 1), complex(0, rank)])
same(mx.distributed.all_sum(z, group=group), [complex(total, size), complex(0, total)], "all_sum of complex numbers")

# An array that is not contiguous, inside of a graph that goes on.
m = mx.arange(12).reshape(3, 4).T + rank
same(mx.distributed.all_sum(m, group=group).sum() + 1, 66 * size + 12 * total + 1, "a sum of all_sum")

# sum_scatter: block i of the sums.
s = mx.distributed.sum_scatter(mx.arange(2 * size) * (rank + 1), group=group)
same(s, [2 * rank * size * (size + 1) // 2, (2 * rank + 1) * size * (size + 1) // 2], "sum_scatter")

# To a rank that is no neighbour on a ring.
across = (rank + size // 2) % size
if rank < across:
    mx.eval(mx.distributed.send(mx.full((1000,), rank), across, group=group))
    same(mx.distributed.recv((3,), mx.int32, across, group=group), [across] * 3, "a message back")
else:
    got = mx.distributed.recv((1000,), mx.int32, across, group=group)
    same(got, [across] * 1000, "a message across")
    mx.eval(mx.distributed.send(got[:3] - got[:3] + rank, across, group=group))

# all_to_all, and its gradient, which sends the blocks back.
x = mx.array([[100 * rank + to, 7] for to in range(size)])
same(cohort_mlx.all_to_all(x, group), [[100 * r + rank, 7] for r in range(size)], "all_to_all")
weight = mx.array([[float(rank + 1)]] * size)
grad = mx.grad(lambda v: (cohort_mlx.all_to_all(v, group) * weight).sum())(mx.ones((size, 1)))
same(grad, [[float(r + 1)] for r in range(size)], "the gradient of all_to_all")

# Splits, and a split of a split, each with its own sums.
half = group.split(rank % 2)
check(half.size() == size // 2 and half.rank() == rank // 2, "a split's rank and size")
same(mx.distributed.all_sum(mx.array([rank]), group=half), [sum(r for r in range(size) if r % 2 == rank % 2)], "all_sum in a half")
turned = group.split(0, size - 1 - rank)
check(turned.rank() == size - 1 - rank, "a split by key")
alone = half.split(half.rank())
check(alone.size() == 1, "a split of a split")

# What is wrong is refused in words.
try:
    cohort_mlx.all_to_all(mx.ones((size + 1,)), group)
    check(False, "an axis that is no multiple was taken")
except ValueError as error:
    check("multiple" in str(error), str(error))

if rank == 0:
    print(f"cohort_mlx: all operations, {size} ranks, engine {cohort_mlx.engine()}")

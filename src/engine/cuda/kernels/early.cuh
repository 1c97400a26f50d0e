/*
 * early.cuh - kernels that are started while the one before them on the stream still runs.
 *
 * To start a kernel takes 1 to 2 us. With CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION that time passes while the
 * kernel before it still runs. Every kernel waits at its beginning for the end of that one, so that nothing else changes: it
 * sees all that was stored there, and is over only when that is. This was run with all ranks on one card. That stores to
 * another card are visible there as soon as behind an ordinary start is assumed.
 *
 * One that was started early has its place on the multiprocessors. So a kernel that waits for other ranks lets the next
 * one start only when all of their kernels are known to run: what is started early could take the place that one of them
 * needs. Cards before compute capability 9.0, and launches without the attribute, know nothing of this.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_EARLY_CUH
#define COHI_ENGINE_CUDA_KERNELS_EARLY_CUH

namespace
{

/* All threads, before the first access to memory. */
__device__ inline void await_what_is_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The next kernel may start when a thread of each block has called it. */
__device__ inline void let_next_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} /* namespace */

#endif

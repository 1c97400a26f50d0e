/* Sandboxes that refuse a system call: what can be done another way is, the rest is an error. */
#include "faults.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { VICTIM_RANK = 1 };

/* From here on the kernel answers `call` with `error`, in this process. */
static bool refuse_call(long call, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        return true;
    test_skip("no filter of system calls can be set: %s", strerror(errno));
    return false;
}

static void join_and_leave(test_rank *self)
{
    if (CHECK_OK(test_join(self)) && CHECK_OK(coh_barrier(self->world)))
        CHECK_OK(coh_finalize(self->world));
}

static void accept4_refused(test_rank *self)
{
    if (refuse_call(SYS_accept4, ENOSYS))
        join_and_leave(self);
}

static void process_copies_refused(test_rank *self)
{
    if (refuse_call(SYS_process_vm_readv, EPERM) && refuse_call(SYS_process_vm_writev, EPERM))
        join_and_leave(self);
}

static void find_warning(void *arg, coh_log_level level, const char *message)
{
    (void)level;
    if (strstr(message, "pidfd_open is refused"))
        *(bool *)arg = true;
}

/* What is lost is told, and the end of a rank is found all the same. */
static void pidfd_refused(test_rank *self)
{
    _Atomic uint64_t *stamp = self->shared;
    bool warned = false;
    if (!refuse_call(SYS_pidfd_open, EPERM))
        return;
    coh_log_to(find_warning, &warned, COH_LOG_WARN);
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_barrier(self->world)))
        return;
    coh_log_to(NULL, NULL, COH_LOG_OFF);
    CHECK(warned);
    if (self->rank == VICTIM_RANK) {
        fault_let_others_out();
        fault_stamp(stamp);
        fault_die(self);
    }
    fault_check_lost(coh_barrier(self->world), VICTIM_RANK, stamp);
    (void)coh_finalize(self->world);
}

/* By ppoll instead, the watcher too. */
static void poll_refused(test_rank *self)
{
#ifdef SYS_poll
    _Atomic uint64_t *stamp = self->shared;
    if (strncmp(self->engine, "mpi:", 4) == 0) {
        test_skip("MPI's own threads poll");
        return;
    }
    if (!refuse_call(SYS_poll, EPERM) || !CHECK_OK(test_join(self))
        || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == VICTIM_RANK) {
        fault_let_others_out();
        fault_stamp(stamp);
        fault_die(self);
    }
    fault_check_lost(coh_barrier(self->world), VICTIM_RANK, stamp);
    (void)coh_finalize(self->world);
#else
    (void)self;
    test_skip("this machine has ppoll only");
#endif
}

static void all_polls_refused(test_rank *self)
{
#ifdef SYS_poll
    if (!refuse_call(SYS_poll, EPERM))
        return;
#endif
    if (!refuse_call(SYS_ppoll, EPERM))
        return;
    CHECK(test_join(self) != COH_OK);
    CHECK_SAYS("poll(2) and ppoll(2) are refused");
}

/* The C library would abort at its first lock. */
static void futex_refused(test_rank *self)
{
    if (!refuse_call(SYS_futex, EPERM))
        return;
    CHECK(test_join(self) != COH_OK);
    CHECK_SAYS("futex(2) is refused");
}

static void robust_list_refused(test_rank *self)
{
    if (refuse_call(SYS_set_robust_list, ENOSYS))
        join_and_leave(self);
}

static void eventfd_refused(test_rank *self)
{
    if (!refuse_call(SYS_eventfd2, EPERM))
        return;
    CHECK(test_join(self) != COH_OK);
    CHECK_SAYS(strcmp(self->engine, "tcp") == 0   ? "tcp|cannot start its thread"
               : strcmp(self->engine, "ucx") == 0 ? "ucx|cannot make a worker"
                                                  : "the watcher cannot be woken");
}

static void memfd_refused(test_rank *self)
{
    if (!refuse_call(SYS_memfd_create, EPERM))
        return;
    coh_status status = test_join(self);
    CHECK(status != COH_OK);
    if (self->rank == 0)
        CHECK_SAYS("cannot make the job's board");
}

const test_case fault_sandbox[] = {
    CASE(accept4_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(process_copies_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(pidfd_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(poll_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(all_polls_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(futex_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(robust_list_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(eventfd_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(memfd_refused, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=1"),
};
FAULT_COUNT(sandbox);

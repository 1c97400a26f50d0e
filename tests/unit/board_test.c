#include "unit.h"

#include "base/os.h"
#include "bootstrap/elsewhere.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static coh_status create(int size, pid_t launcher, const char *program, cohi_board *board)
{
    cohi_profile profile = cohi_profile_describe(cohi_host());
    cohi_board_spec spec = {.size = size,
                            .launcher = launcher,
                            .host = "here",
                            .program = program,
                            .profile = &profile};
    return cohi_board_create(&spec, board);
}

static void made_and_opened(void **state)
{
    cohi_board made, seen;
    (void)state;
    assert_int_equal(create(5, 123, "program", &made), COH_OK);
    assert_int_equal(made.head->size, 5);
    assert_int_equal(made.head->launcher, 123);
    assert_string_equal(made.head->program, "program");
    cohi_profile described = cohi_profile_describe(cohi_host());
    assert_memory_equal(&made.head->profile, &described, sizeof described);
    atomic_store(&cohi_board_slot(&made, 4)->phase, COHI_PHASE_RUNNING);
    assert_int_equal(cohi_board_open(dup(made.fd), &seen), COH_OK);
    assert_ptr_not_equal(seen.head, made.head);
    assert_int_equal(atomic_load(&cohi_board_slot(&seen, 4)->phase), COHI_PHASE_RUNNING);
    assert_int_equal(atomic_load(&cohi_board_slot(&seen, 0)->phase), COHI_PHASE_ABSENT);
    cohi_board_close(&seen);
    cohi_board_close(&made);
    assert_null(made.head);
    cohi_board_close(&made); /* again is nothing */
}

/* The limit is that of a host: the world may be much larger. */
static void few_of_a_large_world(void **state)
{
    enum { SIZE = 100000 };
    static int many[COHI_RANKS_MAX + 1];
    const int ranks[] = {5, SIZE - 1};
    cohi_profile profile = cohi_profile_describe(cohi_host());
    cohi_board_spec spec = {.size = SIZE,
                            .ranks = ranks,
                            .count = 2,
                            .host = "here",
                            .program = "program",
                            .profile = &profile};
    cohi_board board;
    (void)state;
    assert_int_equal(cohi_board_create(&spec, &board), COH_OK);
    assert_non_null(cohi_board_slot(&board, 5));
    assert_non_null(cohi_board_slot(&board, SIZE - 1));
    assert_null(cohi_board_slot(&board, 99998));
    atomic_store(cohi_slot_verdict(cohi_board_slot(&board, 5), SIZE - 1), 1);
    cohi_board_tell_host(&board, 77777, "far");
    cohi_board_tell_end(&board, 77777, 9);
    cohi_told told = cohi_board_read(&board, 77777);
    assert_true(told.ended);
    assert_int_equal(told.wait_status, 9);
    assert_string_equal(cohi_board_host_of(&board, 77777), "far");
    cohi_board_close(&board);
    for (int i = 0; i <= COHI_RANKS_MAX; i++)
        many[i] = i;
    spec.ranks = many;
    spec.count = COHI_RANKS_MAX + 1;
    assert_int_equal(cohi_board_create(&spec, &board), COH_INVALID_ARGUMENT);
    assert_says("a host has 1 to 1024 ranks");
}

/* Slots and what is behind them do not overlap, for small and large worlds. */
static void slots_lie_apart(void **state)
{
    static const int sizes[] = {1, 2, 3, 7, 64, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int size = sizes[i];
        size_t stride = cohi_slot_stride(size, size);
        assert_int_equal(stride % COHI_CACHE_LINE, 0);
        size_t last_verdict = cohi_slot_verdict_offset(size - 1) + sizeof(uint64_t);
        assert_true(cohi_slot_verdict_offset(0) >= sizeof(cohi_slot));
        assert_true(cohi_slot_meet_offset(size, 0) >= last_verdict);
        size_t even = cohi_slot_record_offset(size, 0, 0, size - 1);
        size_t odd = cohi_slot_record_offset(size, 0, 1, size - 1);
        assert_true(even >= cohi_slot_meet_offset(size, 0) + sizeof(cohi_meet));
        assert_true(odd + sizeof(cohi_record) <= cohi_slot_meet_offset(size, 1));
        assert_int_not_equal(even, odd);
        assert_true(cohi_slot_landing_offset(size, 0) >= cohi_slot_meet_offset(size, COHI_TEAMS));
        assert_true(cohi_slot_control_bytes(size) >= cohi_slot_landing_offset(size, size));
        assert_true(cohi_slot_staging_offset(size, 0) >= cohi_slot_control_bytes(size));
        assert_true(cohi_slot_lane_offset(size, 0) >= cohi_slot_log_offset(size) + COHI_LOG_BYTES);
        assert_true(cohi_slot_lane_offset(size, size) <= stride);
    }
}

/* A board of ranks 1, 4 and 5 of a world of 7. */
static void create_on_host(cohi_board *board)
{
    static const int ranks[] = {1, 4, 5};
    cohi_profile profile = cohi_profile_describe(cohi_host());
    cohi_board_spec spec = {.size = 7,
                            .ranks = ranks,
                            .count = 3,
                            .job = 99,
                            .host = "a",
                            .program = "p",
                            .profile = &profile};
    assert_int_equal(cohi_board_create(&spec, board), COH_OK);
}

static void only_ranks_of_the_host_have_slots(void **state)
{
    cohi_board made, seen;
    (void)state;
    create_on_host(&made);
    assert_int_equal(made.bytes, cohi_board_bytes(7, 3));
    assert_true(made.bytes < cohi_board_bytes(7, 7));
    assert_int_equal(made.head->locals, 3);
    assert_int_equal(made.head->job, 99);
    assert_string_equal(made.head->host, "a");
    assert_int_equal(cohi_board_open(dup(made.fd), &seen), COH_OK);
    for (int rank = 0; rank < 7; rank++) {
        bool here = rank == 1 || rank == 4 || rank == 5;
        assert_int_equal(cohi_board_slot(&seen, rank) != NULL, here);
        assert_int_equal(cohi_board_index(&seen, rank) >= 0, here);
    }
    assert_int_equal(cohi_board_ranks(&seen)[2], 5);
    assert_int_equal(cohi_board_index(&seen, 4), 1);
    size_t apart = (size_t)((char *)cohi_board_slot(&seen, 5) - (char *)cohi_board_slot(&seen, 4));
    assert_int_equal(apart, cohi_slot_stride(7, 3));
    assert_int_equal(cohi_board_commit(&made, 5, COHI_TEAMS - 1), COH_OK);
    assert_int_equal(cohi_board_commit_log(&made, 5), COH_OK);
    cohi_board_close(&seen);
    cohi_board_close(&made);
}

static void boards_that_cannot_be(void **state)
{
    static const int lists[][3] = {{0, 1, 7}, {1, 1, 2}, {2, 1, 3}, {-1, 0, 1}};
    cohi_profile profile = cohi_profile_describe(cohi_host());
    cohi_board board;
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        cohi_board_spec spec = {.size = 7,
                                .ranks = lists[i],
                                .count = 3,
                                .host = "",
                                .program = "",
                                .profile = &profile};
        assert_int_equal(cohi_board_create(&spec, &board), COH_INVALID_ARGUMENT);
        assert_says("3 of 7");
    }
}

static void told_of_other_hosts(void **state)
{
    cohi_board board;
    (void)state;
    create_on_host(&board);
    assert_string_equal(cohi_board_host_of(&board, 4), "a");
    assert_string_equal(cohi_board_host_of(&board, 0), "");
    cohi_board_tell_host(&board, 0, "b");
    cohi_board_tell_host(&board, 6, "c");
    cohi_board_tell_host(&board, 2, "b");
    assert_string_equal(cohi_board_host_of(&board, 0), "b");
    assert_string_equal(cohi_board_host_of(&board, 2), "b");
    assert_string_equal(cohi_board_host_of(&board, 6), "c");

    cohi_board_tell_stopped(&board, 0, true, COHI_OP_BARRIER);
    cohi_told told = cohi_board_read(&board, 0);
    assert_true(told.stopped && !told.ended);
    assert_int_equal(told.op, COHI_OP_BARRIER);
    cohi_board_tell_stopped(&board, 0, false, 0);
    assert_false(cohi_board_read(&board, 0).stopped);

    unsigned bell = atomic_load(&cohi_board_slot(&board, 4)->bell);
    cohi_board_tell_end(&board, 0, SIGKILL);
    cohi_board_tell_end(&board, 0, 3 << 8); /* the first stands */
    assert_int_not_equal(atomic_load(&cohi_board_slot(&board, 4)->bell), bell);
    told = cohi_board_read(&board, 0);
    assert_true(told.ended);
    assert_int_equal(told.wait_status, SIGKILL);
    assert_string_equal(cohi_board_host_of(&board, 0), "b");
    assert_false(cohi_board_read(&board, 2).ended);

    cohi_board_tell_end(&board, 4, 3 << 8); /* one of this host has it in its slot */
    assert_int_equal(atomic_load(&cohi_board_slot(&board, 4)->end), COHI_ENDED | 3 << 8);
    assert_true(cohi_board_read(&board, 4).ended);
    bell = atomic_load(&cohi_board_slot(&board, 4)->bell);
    cohi_board_tell_verdict(&board, 6, 5);
    cohi_board_tell_verdict(&board, 6, 2); /* the first stands */
    assert_int_equal(atomic_load(cohi_slot_verdict(cohi_board_slot(&board, 4), 6)), 5);
    assert_int_equal(atomic_load(cohi_slot_verdict(cohi_board_slot(&board, 4), 0)), 0);
    assert_int_equal(atomic_load(&cohi_board_slot(&board, 4)->alarm), 1);
    assert_int_not_equal(atomic_load(&cohi_board_slot(&board, 4)->bell), bell);
    cohi_board_tell_exit(&board, 7);
    cohi_board_tell_exit(&board, 8);
    assert_int_equal(atomic_load(&board.head->global_exit), COHI_ENDED | 7);
    cohi_board_close(&board);
}

static void sealed_against_other_sizes(void **state)
{
    cohi_board made;
    (void)state;
    assert_int_equal(create(2, 0, "p", &made), COH_OK);
    assert_int_not_equal(ftruncate(made.fd, 1), 0);
    assert_int_not_equal(ftruncate(made.fd, 1 << 30), 0);
    assert_true(fcntl(made.fd, F_GETFD) & FD_CLOEXEC);
    assert_true(made.fd > STDERR_FILENO);
    cohi_board_close(&made);
}

static void looking_only(void **state)
{
    cohi_board made, seen;
    (void)state;
    assert_int_equal(create(3, 0, "p", &made), COH_OK);
    assert_int_equal(cohi_board_view(dup(made.fd), &seen), COH_OK);
    assert_int_equal(seen.head->size, 3);
    cohi_board_close(&seen);
    cohi_board_close(&made);
}

static void refuse(int fd, coh_status expected)
{
    cohi_board board = {.fd = -1};
    assert_int_equal(cohi_board_open(fd, &board), expected);
    assert_true(strlen(coh_last_error()) > 0);
    assert_int_equal(cohi_board_view(fd, &board), expected);
    assert_int_not_equal(fcntl(fd, F_GETFD), -1); /* still the caller's */
}

static void what_is_not_a_board(void **state)
{
    char zeros[65536] = {0};
    int pipes[2], file = memfd_create("x", MFD_CLOEXEC);
    cohi_board board;
    (void)state;
    assert_int_equal(cohi_board_open(-1, &board), COH_TRANSPORT);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    refuse(pipes[0], COH_TRANSPORT);
    refuse(file, COH_TRANSPORT); /* empty */
    assert_int_equal(write(file, zeros, sizeof zeros), sizeof zeros);
    refuse(file, COH_TRANSPORT);
    close(file);
    close(pipes[0]);
    close(pipes[1]);
}

/* A copy of a real board, cut short or claiming other sizes, in ordinary memory. */
static int copy_of(const cohi_board *board, size_t bytes)
{
    int file = memfd_create("copy", MFD_CLOEXEC);
    assert_int_equal(write(file, board->head, bytes), bytes);
    return file;
}

/* The version is that of docs/faults.md F25. */
static void boards_that_lie(void **state)
{
    cohi_board made;
    (void)state;
    assert_int_equal(create(4, 0, "p", &made), COH_OK);
    int cut = copy_of(&made, made.bytes - 64);
    cohi_board seen;
    assert_int_not_equal(cohi_board_open(cut, &seen), COH_OK);
    close(cut);
    made.head->size = 100000000;
    int huge = copy_of(&made, made.bytes);
    assert_int_not_equal(cohi_board_open(huge, &seen), COH_OK);
    close(huge);
    made.head->size = 4;
    strcpy(made.head->version, "9.8.7");
    int newer = copy_of(&made, made.bytes);
    assert_int_equal(cohi_board_open(newer, &seen), COH_MISMATCH);
    assert_says("9.8.7");
    assert_says(coh_version_string());
    assert_int_equal(cohi_board_view(newer, &seen), COH_OK); /* looking is allowed */
    cohi_board_close(&seen);
    cohi_board_close(&made);
}

static const char *describe(cohi_slot *slot, char *text)
{
    return cohi_slot_describe(slot, text, 128);
}

static void descriptions(void **state)
{
    cohi_board made;
    char text[128], tiny[4];
    (void)state;
    assert_int_equal(create(1, 0, "p", &made), COH_OK);
    cohi_slot *slot = cohi_board_slot(&made, 0);
    assert_string_equal(describe(slot, text), "starting");
    atomic_store(&slot->pid, getpid());
    atomic_store(&slot->phase, COHI_PHASE_RUNNING);
    assert_string_equal(describe(slot, text), "running");
    assert_string_equal(text, "outside Cohort");
    atomic_store(&slot->op, COHI_OP_BARRIER);
    atomic_store(&slot->sequence, 88);
    atomic_store(&slot->since_ns, 1);
    assert_string_equal(describe(slot, text), "waiting");
    assert_string_equal(text, "in barrier #88");
    cohi_slot_describe(slot, tiny, sizeof tiny);
    assert_string_equal(tiny, "in ");
    atomic_store(&slot->phase, COHI_PHASE_LEFT);
    assert_string_equal(describe(slot, text), "left");
    atomic_store(&slot->phase, COHI_PHASE_EXITING);
    assert_string_equal(describe(slot, text), "failed");
    assert_string_equal(text, "exited without finalize");
    cohi_board_close(&made);
}

static void errors(void **state)
{
    cohi_board made;
    coh_status status;
    char text[COHI_ERROR_BYTES], longer[2 * COHI_ERROR_BYTES];
    (void)state;
    assert_int_equal(create(1, 0, "p", &made), COH_OK);
    cohi_slot *slot = cohi_board_slot(&made, 0);
    assert_int_equal(cohi_slot_read_error(slot, &status, text), 0);
    cohi_slot_publish_error(slot, COH_UNKNOWN_RANK, "coh_put", "there is no rank 9");
    assert_true(cohi_slot_read_error(slot, &status, text) > 0);
    assert_int_equal(status, COH_UNKNOWN_RANK);
    assert_string_equal(text, "coh_put: there is no rank 9");
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    cohi_slot_publish_error(slot, COH_LIMIT, "coh_get", longer); /* the last one stands, cut */
    assert_true(cohi_slot_read_error(slot, &status, text) > 0);
    assert_int_equal(status, COH_LIMIT);
    assert_int_equal(strlen(text), COHI_ERROR_BYTES - 1);
    atomic_fetch_add(&slot->error_turn, 1); /* as while another thread writes, or was killed then */
    cohi_slot_publish_error(slot, COH_BUSY, "coh_put", "lost");
    assert_int_equal(cohi_slot_read_error(slot, &status, text), 0);
    cohi_board_close(&made);
}

static void ends(void **state)
{
    cohi_board made;
    char text[128];
    (void)state;
    assert_int_equal(create(1, 0, "p", &made), COH_OK);
    cohi_slot *slot = cohi_board_slot(&made, 0);
    atomic_store(&slot->phase, COHI_PHASE_RUNNING);
    atomic_store(&slot->end, COHI_ENDED | SIGKILL);
    assert_string_equal(describe(slot, text), "failed");
    assert_non_null(strstr(text, "killed by signal 9"));
    atomic_store(&slot->end, COHI_ENDED | 3 << 8);
    assert_string_equal(describe(slot, text), "failed");
    assert_string_equal(text, "exited with status 3");
    atomic_store(&slot->end, COHI_ENDED);
    assert_string_equal(describe(slot, text), "failed");
    assert_string_equal(text, "exited without finalize");
    atomic_store(&slot->phase, COHI_PHASE_LEFT);
    assert_string_equal(describe(slot, text), "done");
    cohi_board_close(&made);
}

/* A stopped and a dead process, as /proc shows them. */
static void processes_that_do_not_run(void **state)
{
    cohi_board made;
    char text[128];
    int status;
    (void)state;
    assert_int_equal(create(1, 0, "p", &made), COH_OK);
    cohi_slot *slot = cohi_board_slot(&made, 0);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    atomic_store(&slot->pid, child);
    atomic_store(&slot->phase, COHI_PHASE_RUNNING);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_string_equal(describe(slot, text), "stopped");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_string_equal(describe(slot, text), "gone");
    cohi_board_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_of_a_large_world),
        cmocka_unit_test(made_and_opened),
        cmocka_unit_test(slots_lie_apart),
        cmocka_unit_test(only_ranks_of_the_host_have_slots),
        cmocka_unit_test(boards_that_cannot_be),
        cmocka_unit_test(told_of_other_hosts),
        cmocka_unit_test(sealed_against_other_sizes),
        cmocka_unit_test(looking_only),
        cmocka_unit_test(what_is_not_a_board),
        cmocka_unit_test(boards_that_lie),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(errors),
        cmocka_unit_test(ends),
        cmocka_unit_test(processes_that_do_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

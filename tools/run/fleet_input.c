/* fleet_input.c - the launcher's standard input, which goes to rank 0 on its host. */
#include "run/fleet.h"

#include <errno.h>
#include <unistd.h>

/* One that is not in the foreground would be stopped when it reads its terminal. */
static int is_in_background(void)
{
    pid_t foreground = tcgetpgrp(STDIN_FILENO);
    return foreground >= 0 && foreground != getpgrp();
}

int cohi_fleet_wants_input(const cohi_job *run)
{
    const cohi_fleet *fleet = run->fleet;
    return fleet->started && !fleet->input_ended && fleet->input_credit > 0
           && run->why == COHI_WHY_NONE && fleet->remotes[0].state == COHI_REMOTE_RUNNING
           && !run->ranks[0].ended && !is_in_background();
}

/* One that cannot be read is at its end. */
void cohi_fleet_read_input(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet;
    char bytes[COHI_FRAME_BYTES_MAX];
    size_t room = fleet->input_credit < sizeof bytes ? fleet->input_credit : sizeof bytes;
    ssize_t got = read(STDIN_FILENO, bytes, room);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    size_t count = got > 0 ? (size_t)got : 0;
    fleet->input_ended = count == 0;
    fleet->input_credit -= (uint32_t)count;
    cohi_stream_send_output(&fleet->remotes[0].stream, COHI_FRAME_INPUT, 0, bytes, count);
    cohi_stream_flush(&fleet->remotes[0].stream);
}

int cohi_fleet_note_taken(cohi_job *run, uint32_t bytes)
{
    if (bytes > COHI_CREDIT_BYTES - run->fleet->input_credit)
        return -1;
    run->fleet->input_credit += bytes;
    return 0;
}

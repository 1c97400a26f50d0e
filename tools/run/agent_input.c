/* agent_input.c - the standard input of rank 0, which comes from the launcher.
 *
 * Rank 0 reads a pipe, which is the agent's own standard input until its ranks have it. What the pipe does
 * not take waits here; the launcher sends no more than there is room for. */
#include "run/agent.h"

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

coh_status cohi_agent_open_input(cohi_agent *agent)
{
    int ends[2];
    cohi_agent_input *input = &agent->input;
    if (agent->order.here != 0 || agent->order.input_fd >= 0)
        return COH_OK; /* rank 0 is elsewhere, or inherits the launcher's */
    input->data = malloc(COHI_CREDIT_BYTES);
    if (!input->data)
        return cohi_fail(COH_NO_MEMORY, "no memory for the input of rank 0");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return cohi_fail_os(errno, "cannot make the pipe for the input of rank 0");
    input->fd = ends[1];
    int failed = fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0 || dup2(ends[0], STDIN_FILENO) < 0;
    int error = errno;
    cohi_os_close(ends[0]);
    return failed ? cohi_fail_os(error, "cannot make the pipe for the input of rank 0") : COH_OK;
}

void cohi_agent_close_input(cohi_agent *agent)
{
    cohi_os_close(agent->input.fd);
    agent->input.fd = -1;
    free(agent->input.data);
    agent->input.data = NULL;
    agent->input.start = agent->input.end = 0;
}

int cohi_agent_has_input(const cohi_agent *agent)
{
    return agent->input.fd >= 0 && agent->input.end > agent->input.start;
}

/* The end of the input comes after all of it. */
static void end_if_done(cohi_agent *agent)
{
    if (agent->input.at_end && !cohi_agent_has_input(agent))
        cohi_agent_close_input(agent);
}

void cohi_agent_write_input(cohi_agent *agent)
{
    cohi_agent_input *input = &agent->input;
    if (!cohi_agent_has_input(agent))
        return;
    ssize_t put = write(input->fd, input->data + input->start, input->end - input->start);
    if (put < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (put <= 0) { /* nobody will read it */
        cohi_agent_close_input(agent);
        return;
    }
    uint32_t taken = (uint32_t)put;
    input->start += taken;
    cohi_stream_send(&agent->stream, COHI_FRAME_TAKEN, 0, &taken, sizeof taken);
    end_if_done(agent);
}

int cohi_agent_take_input(cohi_agent *agent, const cohi_frame *frame)
{
    cohi_agent_input *input = &agent->input;
    if (input->fd < 0)
        return 0; /* what was under way when rank 0 closed it */
    size_t waiting = input->end - input->start;
    if (frame->length > COHI_CREDIT_BYTES - waiting)
        return -1;
    memmove(input->data, input->data + input->start, waiting);
    memcpy(input->data + waiting, frame->data, frame->length);
    input->start = 0;
    input->end = waiting + frame->length;
    input->at_end = frame->length == 0;
    cohi_agent_write_input(agent);
    end_if_done(agent);
    return 0;
}

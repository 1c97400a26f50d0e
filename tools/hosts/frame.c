#include "hosts/frame.h"

#include "base/error.h"
#include "facts.h"
#include "sight.h"
#include "snapshot.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What a payload may have, and whether the frame is of a rank. */
static const struct bounds {
    size_t least, most;
    int of_rank;
} bounds[COHI_FRAME_KINDS] = {
    [COHI_FRAME_ORDER] = {1, COHI_FRAME_ORDER_MAX, 0},
    [COHI_FRAME_START] = {sizeof(coh_unique_id), sizeof(coh_unique_id), 0},
    [COHI_FRAME_SIGNAL] = {sizeof(int32_t), sizeof(int32_t), 0},
    [COHI_FRAME_ABANDON] = {0, 0, 0},
    [COHI_FRAME_CREDIT] = {sizeof(cohi_credit), sizeof(cohi_credit), 1},
    [COHI_FRAME_LOOK] = {0, 0, 0},
    [COHI_FRAME_INPUT] = {0, COHI_FRAME_BYTES_MAX, 1},
    [COHI_FRAME_BLAMED] = {sizeof(cohi_blame), sizeof(cohi_blame), 1},
    [COHI_FRAME_ENDED] = {sizeof(cohi_end), sizeof(cohi_end), 1},
    [COHI_FRAME_STOPPED] = {sizeof(cohi_stop), sizeof(cohi_stop), 1},
    [COHI_FRAME_EXIT] = {sizeof(int32_t), sizeof(int32_t), 0},
    [COHI_FRAME_PING] = {0, 0, 0},
    [COHI_FRAME_READY] = {sizeof(cohi_ready), sizeof(cohi_ready), 0},
    [COHI_FRAME_ROOT] = {sizeof(coh_unique_id), sizeof(coh_unique_id), 0},
    [COHI_FRAME_FAILED] = {1, COHI_FRAME_TEXT_MAX, 0},
    [COHI_FRAME_STARTED] = {sizeof(int32_t), sizeof(int32_t), 1},
    [COHI_FRAME_NO_START] = {sizeof(int32_t) + 1, COHI_FRAME_TEXT_MAX, 0},
    [COHI_FRAME_OUTPUT] = {0, COHI_FRAME_BYTES_MAX, 1},
    [COHI_FRAME_ERROR] = {0, COHI_FRAME_BYTES_MAX, 1},
    [COHI_FRAME_TAKEN] = {sizeof(uint32_t), sizeof(uint32_t), 1},
    [COHI_FRAME_FACTS] = {sizeof(cohi_facts), sizeof(cohi_facts), 1},
    [COHI_FRAME_SIGHT] = {sizeof(cohi_sight), sizeof(cohi_sight), 1},
    [COHI_FRAME_SNAPSHOT] = {sizeof(cohi_snapshot_row), sizeof(cohi_snapshot_row), 1},
    [COHI_FRAME_RACE] = {1, COHI_FRAME_TEXT_MAX, 0},
    [COHI_FRAME_SAY] = {1, COHI_FRAME_TEXT_MAX, 0},
    [COHI_FRAME_DONE] = {0, 0, 0},
};

static int is_sound(const cohi_frame_head *head, int size)
{
    if (head->mark != COHI_FRAME_MARK || head->kind == 0 || head->kind >= COHI_FRAME_KINDS)
        return 0;
    const struct bounds *row = &bounds[head->kind];
    int of_rank = head->rank >= 0 && head->rank < size;
    return head->length >= row->least && head->length <= row->most
           && (row->of_rank ? of_rank : head->rank == -1);
}

ptrdiff_t cohi_frame_read(const char *data, size_t length, int size, cohi_frame *frame)
{
    cohi_frame_head head;
    if (length < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    if (!is_sound(&head, size)) {
        cohi_fail(COH_TRANSPORT, "a frame of kind %u, rank %d and %u bytes cannot be", head.kind,
                  (int)head.rank, head.length);
        return -1;
    }
    if (length - sizeof head < head.length)
        return 0;
    *frame = (cohi_frame){.kind = (cohi_frame_kind)head.kind,
                          .rank = head.rank,
                          .data = data + sizeof head,
                          .length = head.length};
    return (ptrdiff_t)(sizeof head + head.length);
}

size_t cohi_frame_find_magic(const char *data, size_t length, char *version, size_t room)
{
    const char *magic = memmem(data, length, COHI_AGENT_MAGIC, strlen(COHI_AGENT_MAGIC));
    if (!magic)
        return 0;
    const char *text = magic + strlen(COHI_AGENT_MAGIC);
    const char *feed = memchr(text, '\n', length - (size_t)(text - data));
    if (!feed)
        return 0;
    snprintf(version, room, "%.*s", (int)(feed - text < 64 ? feed - text : 64), text);
    for (char *c = version; *c; c++)
        *c = isprint((unsigned char)*c) ? *c : '?';
    return (size_t)(feed - data) + 1;
}

void cohi_frame_copy(const cohi_frame *frame, void *to, size_t bytes)
{
    memcpy(to, frame->data, bytes < frame->length ? bytes : frame->length);
}

void cohi_frame_text(const cohi_frame *frame, size_t from, char *text, size_t room)
{
    size_t count = frame->length > from ? frame->length - from : 0;
    count = count < room ? count : room - 1;
    for (size_t i = 0; i < count; i++) {
        char c = frame->data[from + i];
        text[i] = iscntrl((unsigned char)c) && c != '\n' ? '?' : c;
    }
    text[count] = '\0';
}

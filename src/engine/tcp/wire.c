#include "engine/tcp/wire.h"

#include "engine/engine.h"

#include <string.h>

const char cohi_tcp_magic[8] = "cohort1";

_Static_assert(sizeof(cohi_tcp_head) == 32, "a head is 32 bytes on every host");
_Static_assert(sizeof(cohi_tcp_hello) == 64, "a hello is 64 bytes on every host");
_Static_assert(sizeof(cohi_tcp_welcome) == 32, "an answer to it is 32 bytes on every host");

static const struct verb_row {
    const char *name;
    size_t extension;
    uint64_t most;
    bool follows;
} rows[COHI_TCP_VERBS] = {
#define ROW(constant, name, extension, most, follows) [constant] = {name, extension, most, follows},
    COHI_TCP_VERB_TABLE(ROW)
#undef ROW
};

size_t cohi_tcp_head_bytes(unsigned verb)
{
    return sizeof(cohi_tcp_head) + rows[verb].extension;
}

uint64_t cohi_tcp_payload_bytes(const cohi_tcp_head *head)
{
    return rows[head->verb].follows ? head->bytes : 0;
}

const char *cohi_tcp_verb_name(unsigned verb)
{
    return verb < COHI_TCP_VERBS && rows[verb].name ? rows[verb].name : "unknown";
}

static const char *check_head(const cohi_tcp_head *head)
{
    if (head->verb >= COHI_TCP_VERBS || !rows[head->verb].name)
        return "its verb is unknown";
    if (head->bytes > rows[head->verb].most)
        return "it is too long";
    if (head->segment >= COHI_SEGMENTS_MAX)
        return "there can be no such segment";
    return NULL;
}

const char *cohi_tcp_decode(const unsigned char *bytes, size_t count, cohi_tcp_frame *frame,
                            size_t *taken)
{
    *taken = 0;
    if (count < sizeof frame->head)
        return NULL;
    memcpy(&frame->head, bytes, sizeof frame->head);
    frame->payload = NULL;
    const char *wrong = check_head(&frame->head);
    if (wrong)
        return wrong;
    size_t all = cohi_tcp_head_bytes(frame->head.verb);
    if (count < all)
        return NULL;
    memcpy(&frame->extension, bytes + sizeof frame->head, all - sizeof frame->head);
    *taken = all;
    return NULL;
}

size_t cohi_tcp_encode(const cohi_tcp_frame *frame, unsigned char *bytes)
{
    size_t all = cohi_tcp_head_bytes(frame->head.verb);
    memcpy(bytes, &frame->head, sizeof frame->head);
    memcpy(bytes + sizeof frame->head, &frame->extension, all - sizeof frame->head);
    return all;
}

const char *cohi_tcp_check_hello(const cohi_tcp_hello *hello, int rank, int size)
{
    if (memcmp(hello->magic, cohi_tcp_magic, sizeof hello->magic) != 0)
        return "it does not speak this protocol";
    if (hello->order_mark != COHI_TCP_ORDER_MARK)
        return "its host has another byte order";
    if (hello->version != COHI_TCP_VERSION)
        return "it speaks another version of the protocol";
    if (hello->to != rank || hello->size != size)
        return "it calls another rank";
    if (hello->from < 0 || hello->from >= size || hello->from == rank)
        return "there is no such rank";
    return NULL;
}

const char *cohi_tcp_check_welcome(const cohi_tcp_welcome *welcome, int rank)
{
    if (memcmp(welcome->magic, cohi_tcp_magic, sizeof welcome->magic) != 0)
        return "it does not speak this protocol";
    if (welcome->rank != rank)
        return "another rank answers";
    if (welcome->reply < COHI_TCP_REPLY_OPEN || welcome->reply > COHI_TCP_REPLY_LOST)
        return "its answer is unknown";
    return NULL;
}

#include "core/world/image.h"

#include "base/os.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The watcher's, in place of the C library's, of which it uses none. */
static struct robust_list_head held;
static int holder;

static struct robust_list *link_of(cohi_slot *slot)
{
    return (struct robust_list *)(void *)&slot->image_link;
}

_Static_assert(sizeof(struct robust_list) == sizeof((cohi_slot *)0)->image_link,
               "a link is a pointer");

void cohi_image_begin(void)
{
    held.list.next = &held.list;
    held.futex_offset = (long)offsetof(cohi_slot, image) - (long)offsetof(cohi_slot, image_link);
    held.list_op_pending = NULL;
    holder = cohi_os_thread_id();
    (void)syscall(SYS_set_robust_list, &held, sizeof held); /* refused: exec goes unnoticed */
}

void cohi_image_hold(coh_world *world)
{
    cohi_slot *slot = world->slot;
    if (atomic_load(&slot->image) == (unsigned)holder)
        return;
    atomic_store(&slot->image, (unsigned)holder);
    link_of(slot)->next = held.list.next;
    atomic_signal_fence(memory_order_seq_cst); /* whole at any moment at which the thread may end */
    held.list.next = link_of(slot);
}

void cohi_image_release(coh_world *world)
{
    struct robust_list *link = link_of(world->slot);
    for (struct robust_list *at = &held.list; at && at->next; at = at->next) {
        if (at->next == link) {
            at->next = link->next;
            break;
        }
        if (at->next == &held.list)
            break;
    }
    atomic_store(&world->slot->image, 0);
}

bool cohi_image_is_gone(cohi_slot *slot)
{
    return atomic_load(&slot->image) & FUTEX_OWNER_DIED;
}

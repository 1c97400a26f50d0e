#include "info.h"

#include "json_text.h"

#include <cohort-ml.h>
#include <stdio.h>

static void summarize(coh_device_kind kind, char *text, size_t room)
{
    coh_device *device;
    coh_device_info facts = {.size = sizeof facts};
    int count = 0;
    (void)coh_device_count(kind, &count);
    if (coh_device_open(kind, 0, &device) != COH_OK)
        return;
    if (coh_device_query(device, &facts) == COH_OK)
        snprintf(text, room, "%d, the first with %d cores and %.1f GiB", count, facts.cores,
                 (double)facts.memory / 0x1p30);
    (void)coh_device_close(device);
}

static json_t *device_json(coh_device_kind kind)
{
    char summary[128] = "";
    int available = coh_device_available(kind) == COH_OK;
    json_t *reason = available ? json_null() : cohi_json_text(coh_last_error());
    if (available)
        summarize(kind, summary, sizeof summary);
    return json_pack("{s:s, s:b, s:s, s:o}", "name", coh_device_kind_name(kind), "available",
                     available, "summary", summary, "reason", reason);
}

json_t *cohi_info_devices(void)
{
    json_t *list = json_array();
    for (int kind = 0; coh_device_kind_name((coh_device_kind)kind); kind++)
        json_array_append_new(list, device_json((coh_device_kind)kind));
    return list;
}

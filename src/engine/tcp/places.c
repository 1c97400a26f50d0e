#include "engine/tcp/places.h"

#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- addresses as bits ---- */

static unsigned bits_of(const cohi_tcp_place *place)
{
    return place->family == 6 ? 128 : 32;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned count)
{
    unsigned whole = count / 8, rest = count % 8;
    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

bool cohi_tcp_place_is_loopback(const cohi_tcp_place *place)
{
    static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
    return place->family == 6 ? memcmp(place->host, &loopback, sizeof loopback) == 0
                              : place->host[0] == 127;
}

/* It means something on its own link only, and would need to be told which. */
static bool is_link_local(const cohi_tcp_place *place)
{
    static const unsigned char link_local[] = {0xfe, 0x80};
    return place->family == 6 && same_bits(place->host, link_local, 10);
}

/* ---- the addresses of this host ---- */

static unsigned mask_bits(const unsigned char *mask, unsigned most)
{
    unsigned count = 0;
    while (count < most && (mask[count / 8] >> (7 - count % 8) & 1))
        count++;
    return count;
}

/* An address of the kernel's list, if it is one that can be listened at. */
static bool read_place(const struct ifaddrs *entry, cohi_tcp_place *place)
{
    *place = (cohi_tcp_place){.family = 0};
    if (!entry->ifa_addr || !entry->ifa_netmask || !(entry->ifa_flags & IFF_UP)
        || !(entry->ifa_flags & IFF_RUNNING))
        return false;
    if (entry->ifa_addr->sa_family == AF_INET) {
        struct sockaddr_in address, mask;
        memcpy(&address, entry->ifa_addr, sizeof address);
        memcpy(&mask, entry->ifa_netmask, sizeof mask);
        place->family = 4;
        memcpy(place->host, &address.sin_addr, sizeof address.sin_addr);
        place->prefix = (uint8_t)mask_bits((const unsigned char *)&mask.sin_addr, 32);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
        struct sockaddr_in6 address, mask;
        memcpy(&address, entry->ifa_addr, sizeof address);
        memcpy(&mask, entry->ifa_netmask, sizeof mask);
        place->family = 6;
        memcpy(place->host, &address.sin6_addr, sizeof address.sin6_addr);
        place->prefix = (uint8_t)mask_bits((const unsigned char *)&mask.sin6_addr, 128);
    }
    return place->family != 0 && !is_link_local(place);
}

/* What COHORT_NET_INTERFACE asks for. */
struct wish {
    const char *text;
    bool pretended;        /* this machine plays several hosts */
    cohi_tcp_place subnet; /* family 0: it is the name of an interface, or nothing */
};

static coh_status parse_wish(const cohi_config *config, struct wish *wish)
{
    char host[INET6_ADDRSTRLEN];
    *wish = (struct wish){.text = config->net_interface ? config->net_interface : "",
                          .pretended = config->host && *config->host};
    const char *slash = strchr(wish->text, '/');
    if (!slash)
        return COH_OK;
    snprintf(host, sizeof host, "%.*s", (int)(slash - wish->text), wish->text);
    char *end;
    unsigned long bits = strtoul(slash + 1, &end, 10);
    wish->subnet.family = inet_pton(AF_INET, host, wish->subnet.host) == 1    ? 4
                          : inet_pton(AF_INET6, host, wish->subnet.host) == 1 ? 6
                                                                              : 0;
    if (wish->subnet.family == 0 || end == slash + 1 || *end || slash[1] == '-' || slash[1] == '+'
        || bits > bits_of(&wish->subnet))
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_NET_INTERFACE: '%s' is not a subnet; give an interface such as "
                         "eth0, or a subnet such as 10.0.0.0/8 or fd00::/8",
                         wish->text);
    wish->subnet.prefix = (uint8_t)bits;
    return COH_OK;
}

static bool is_wished(const struct wish *wish, const char *interface, const cohi_tcp_place *place)
{
    if (wish->subnet.family)
        return place->family == wish->subnet.family
               && same_bits(place->host, wish->subnet.host, wish->subnet.prefix);
    if (*wish->text)
        return strcmp(interface, wish->text) == 0;
    return wish->pretended || !cohi_tcp_place_is_loopback(place);
}

static void add_text(char *text, size_t room, const char *interface, const cohi_tcp_place *place)
{
    char host[INET6_ADDRSTRLEN] = "?";
    size_t used = strlen(text);
    (void)inet_ntop(place->family == 6 ? AF_INET6 : AF_INET, place->host, host, sizeof host);
    snprintf(text + used, room - used, "%s%s %s", used ? ", " : "", interface, host);
}

static coh_status refuse_wish(const struct wish *wish, const char *there, unsigned families)
{
    const char *lacks = wish->subnet.family == 6 && !(families & 1 << 6)   ? " (IPv6 is not there)"
                        : wish->subnet.family == 4 && !(families & 1 << 4) ? " (IPv4 is not there)"
                                                                           : "";
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "COHORT_NET_INTERFACE: '%s' is no address of this host that is up%s; there "
                     "are: %s",
                     wish->text, lacks, *there ? there : "none");
}

static coh_status choose_of(const struct ifaddrs *list, const struct wish *wish,
                            cohi_tcp_address *address)
{
    char there[COHI_TCP_PLACES_TEXT] = "";
    unsigned families = 0;
    bool found = false;
    for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        cohi_tcp_place place;
        if (!read_place(entry, &place))
            continue;
        add_text(there, sizeof there, entry->ifa_name, &place);
        families |= 1u << place.family;
        bool wished = is_wished(wish, entry->ifa_name, &place);
        found = found || wished;
        if (wished && address->count < COHI_TCP_PLACES
            && (address->secures || cohi_tcp_place_is_loopback(&place)))
            address->places[address->count++] = place;
    }
    return found || !*wish->text ? COH_OK : refuse_wish(wish, there, families);
}

coh_status cohi_tcp_places_choose(const cohi_config *config, cohi_tcp_address *address)
{
    struct wish wish;
    struct ifaddrs *list;
    coh_status status = parse_wish(config, &wish);
    if (status != COH_OK)
        return status;
    address->count = 0;
    if (getifaddrs(&list) != 0) { /* ranks of one host do not need them */
        cohi_log(COH_LOG_WARN, "tcp: the kernel does not tell the addresses of this host: %s",
                 cohi_os_error_text(errno));
        return COH_OK;
    }
    status = choose_of(list, &wish, address);
    freeifaddrs(list);
    return status;
}

/* ---- ports ---- */

coh_status cohi_tcp_ports_parse(const char *text, cohi_tcp_ports *ports)
{
    unsigned first = 0, last = 0;
    int used = 0;
    *ports = (cohi_tcp_ports){.first = 0};
    if (!text || !*text)
        return COH_OK;
    int found = sscanf(text, "%5u%n-%5u%n", &first, &used, &last, &used);
    if (found == 1)
        last = first;
    if (found < 1 || text[used] || *text == '-' || *text == '+' || first < 1 || last > 65535
        || first > last)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_PORTS: '%s' is not a range of ports; give the first and the last, "
                         "of 1 to 65535, such as 40000-40099",
                         text);
    *ports = (cohi_tcp_ports){.first = first, .last = last};
    return COH_OK;
}

/* ---- which to call ---- */

int cohi_tcp_places_count(const cohi_tcp_address *address)
{
    return address->count <= COHI_TCP_PLACES ? (int)address->count : 0;
}

enum { NEAREST = 0, COMMON = 1, FAR = 2, NEVER = 3 };

static int distance_between(const cohi_tcp_place *own, const cohi_tcp_place *place,
                            bool same_network)
{
    if (own->family != place->family)
        return NEVER;
    if (!same_network && memcmp(own->host, place->host, sizeof own->host) == 0)
        return -1; /* each of two hosts has a bridge of its own with that address */
    return own->prefix <= bits_of(own) && same_bits(own->host, place->host, own->prefix) ? COMMON
                                                                                         : FAR;
}

static int distance(const cohi_tcp_address *own, const cohi_tcp_address *peer,
                    const cohi_tcp_place *place)
{
    bool same_network = own->network && own->network == peer->network;
    int best = NEVER;
    if (cohi_tcp_place_is_loopback(place))
        return same_network ? NEAREST : NEVER;
    for (int i = 0; i < cohi_tcp_places_count(own); i++) {
        int found = distance_between(&own->places[i], place, same_network);
        if (found < 0)
            return NEVER;
        best = found < best ? found : best;
    }
    return best;
}

int cohi_tcp_places_order(const cohi_tcp_address *own, const cohi_tcp_address *peer,
                          unsigned char order[COHI_TCP_PLACES])
{
    int count = 0;
    for (int wanted = NEAREST; wanted < NEVER; wanted++)
        for (int i = 0; i < cohi_tcp_places_count(peer); i++)
            if (distance(own, peer, &peer->places[i]) == wanted)
                order[count++] = (unsigned char)i;
    return count;
}

void cohi_tcp_places_text(const cohi_tcp_address *address, char text[COHI_TCP_PLACES_TEXT])
{
    size_t used = 0;
    snprintf(text, COHI_TCP_PLACES_TEXT, "no address");
    for (int i = 0; i < cohi_tcp_places_count(address); i++) {
        char one[COHI_TCP_PLACE_TEXT];
        cohi_tcp_place_text(&address->places[i], one);
        used +=
            (size_t)snprintf(text + used, COHI_TCP_PLACES_TEXT - used, "%s%s", i ? ", " : "", one);
    }
}

/* A libnvidia-ml.so.1 without cards. The machine is a text file that NVML_DOUBLE names; a line each:
 *
 *   card uuid=GPU-… bus=0000:17:00.0 numa=0 [util=97 used=BYTES total=BYTES power=MILLIWATT clock=MHZ
 *        ecc=N procs=N mig=1 hidden=1]         the next card; a number that is not given is not supported
 *   slice CARD uuid=MIG-… used=… total=…       a MIG slice of a card
 *   nvlink A B COUNT                           links straight between two cards
 *   switch A COUNT                             links of a card into an NVSwitch
 *   topo A B LEVEL                             common ancestor (10 one switch … 50 system); else 50
 *   fail FUNCTION CODE                         the function answers with that error
 *   sleep FUNCTION SECONDS                     the function takes that long
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, UNKNOWN = 999 };
enum { CARDS = 64, LINKS = 18, FAULTS = 32, SYSTEM = 50, TO_GPU = 0, TO_SWITCH = 2 };

typedef struct {
    char uuid[96], bus[32];
    long long numa, util, used, total, power, clock, ecc, procs, mig, hidden;
    int parent; /* of a slice; -1 for a card */
    int links[LINKS], link_count; /* the peer's number, -1 for a switch */
} Card;

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
} Pci;

typedef struct {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} Process;

static Card cards[CARDS];
static int card_count, slice_count, topo[CARDS][CARDS];
static struct { char name[64]; int code; double seconds; } faults[FAULTS];
static int fault_count;

static int fault(const char *name) {
    for (int i = 0; i < fault_count; i++)
        if (!strcmp(faults[i].name, name)) {
            usleep((useconds_t)(faults[i].seconds * 1e6));
            if (faults[i].code) return faults[i].code;
        }
    return OK;
}
#define MAY_FAIL do { int code = fault(__func__); if (code) return code; } while (0)

static void set_number(Card *card, const char *key, long long value) {
    struct { const char *name; long long *place; } known[] = {
        {"numa", &card->numa}, {"util", &card->util}, {"used", &card->used}, {"total", &card->total},
        {"power", &card->power}, {"clock", &card->clock}, {"ecc", &card->ecc},
        {"procs", &card->procs}, {"mig", &card->mig}, {"hidden", &card->hidden}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, key)) { *known[i].place = value; return; }
    fprintf(stderr, "nvml double: no such key: %s\n", key);
    exit(97);
}

static void read_card(Card *card, int parent) {
    memset(card, 0, sizeof *card);
    card->numa = card->util = card->used = card->total = card->power = card->clock = -1;
    card->ecc = card->procs = -1;
    card->parent = parent;
    for (char *word = strtok(NULL, " \n"); word; word = strtok(NULL, " \n")) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value++ = 0;
        if (!strcmp(word, "uuid")) snprintf(card->uuid, sizeof card->uuid, "%s", value);
        else if (!strcmp(word, "bus")) snprintf(card->bus, sizeof card->bus, "%s", value);
        else set_number(card, word, atoll(value));
    }
}

static int number(void) { char *word = strtok(NULL, " \n"); return word ? atoi(word) : 0; }

static void add_links(int from, int to, int count) {
    while (count-- > 0 && cards[from].link_count < LINKS) cards[from].links[cards[from].link_count++] = to;
}

static void read_fault(int sleeps) {
    char *name = strtok(NULL, " \n"), *value = strtok(NULL, " \n");
    snprintf(faults[fault_count].name, sizeof faults[fault_count].name, "%s", name);
    if (sleeps) faults[fault_count++].seconds = atof(value);
    else faults[fault_count++].code = atoi(value);
}

static void read_line(char *line) {
    char *word = strtok(line, " \n");
    if (!word || *word == '#') return;
    if (!strcmp(word, "card")) read_card(&cards[card_count++], -1);
    else if (!strcmp(word, "slice")) { int parent = number(); read_card(&cards[CARDS - ++slice_count], parent); }
    else if (!strcmp(word, "nvlink")) { int a = number(), b = number(), n = number(); add_links(a, b, n); add_links(b, a, n); }
    else if (!strcmp(word, "switch")) { int a = number(); add_links(a, -1, number()); }
    else if (!strcmp(word, "topo")) { int a = number(), b = number(); topo[a][b] = topo[b][a] = number(); }
    else if (!strcmp(word, "fail") || !strcmp(word, "sleep")) read_fault(*word == 's');
    else { fprintf(stderr, "nvml double: no such line: %s\n", word); exit(97); }
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    const char *path = getenv("NVML_DOUBLE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return 9; /* driver not loaded */
    char line[1024];
    card_count = slice_count = fault_count = 0;
    while (fgets(line, sizeof line, file)) read_line(line);
    fclose(file);
    MAY_FAIL;
    return OK;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) { MAY_FAIL; return OK; }

const char *nvmlErrorString(int code) {
    return code == UNSUPPORTED ? "Not Supported" : code == NO_PERMISSION ? "Insufficient Permissions" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *count) { MAY_FAIL; *count = (unsigned)card_count; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Card **card) {
    MAY_FAIL;
    if (index >= (unsigned)card_count) return INVALID;
    if (cards[index].hidden > 0) return NO_PERMISSION;
    *card = &cards[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Card **card) {
    MAY_FAIL;
    for (int i = 0; i < CARDS; i++)
        if (*cards[i].uuid && !strcmp(cards[i].uuid, uuid)) { *card = &cards[i]; return OK; }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(Card *card, char *uuid, unsigned length) { MAY_FAIL; snprintf(uuid, length, "%s", card->uuid); return OK; }

static void fill(Pci *pci, const char *bus) {
    memset(pci, 0, sizeof *pci);
    sscanf(bus, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->legacy, sizeof pci->legacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus, pci->device);
    snprintf(pci->id, sizeof pci->id, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
}

int nvmlDeviceGetPciInfo_v3(Card *card, Pci *pci) { MAY_FAIL; fill(pci, card->bus); return OK; }

int nvmlDeviceGetMemoryAffinity(Card *card, unsigned size, unsigned long *nodes, int scope) {
    MAY_FAIL;
    (void)scope;
    if (card->numa < 0) return UNSUPPORTED;
    memset(nodes, 0, size * sizeof *nodes);
    if (card->numa >= (long long)(size * 64)) return INVALID;
    nodes[card->numa / 64] = 1UL << (card->numa % 64);
    return OK;
}

int nvmlDeviceGetMigMode(Card *card, unsigned *now, unsigned *pending) {
    MAY_FAIL;
    if (card->mig < 0) return UNSUPPORTED;
    *now = *pending = (unsigned)card->mig;
    return OK;
}

int nvmlDeviceGetNvLinkState(Card *card, unsigned link, unsigned *active) {
    MAY_FAIL;
    if (!card->link_count) return UNSUPPORTED;
    if (link >= LINKS) return INVALID;
    *active = link < (unsigned)card->link_count;
    return OK;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(Card *card, unsigned link, unsigned *type) {
    MAY_FAIL;
    *type = card->links[link] < 0 ? TO_SWITCH : TO_GPU;
    return OK;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Card *card, unsigned link, Pci *pci) {
    MAY_FAIL;
    fill(pci, card->links[link] < 0 ? "0000:C4:00.0" : cards[card->links[link]].bus);
    return OK;
}

int nvmlDeviceGetTopologyCommonAncestor(Card *a, Card *b, unsigned *level) {
    MAY_FAIL;
    int found = topo[a - cards][b - cards];
    *level = (unsigned)(found ? found : SYSTEM);
    return OK;
}

int nvmlDeviceGetUtilizationRates(Card *card, unsigned rates[2]) {
    MAY_FAIL;
    if (card->util < 0) return UNSUPPORTED;
    rates[0] = (unsigned)card->util;
    rates[1] = 0;
    return OK;
}

int nvmlDeviceGetMemoryInfo(Card *card, unsigned long long memory[3]) {
    MAY_FAIL;
    if (card->total < 0) return UNSUPPORTED;
    memory[0] = (unsigned long long)card->total;
    memory[1] = (unsigned long long)(card->total - card->used);
    memory[2] = (unsigned long long)card->used;
    return OK;
}

static int number_of(long long value, unsigned *out) { if (value < 0) return UNSUPPORTED; *out = (unsigned)value; return OK; }

int nvmlDeviceGetPowerUsage(Card *card, unsigned *milliwatt) { MAY_FAIL; return number_of(card->power, milliwatt); }

int nvmlDeviceGetClockInfo(Card *card, int type, unsigned *mhz) {
    MAY_FAIL;
    return type == 1 ? number_of(card->clock, mhz) : INVALID; /* 1: the multiprocessors' clock */
}

int nvmlDeviceGetTotalEccErrors(Card *card, int type, int counter, unsigned long long *errors) {
    MAY_FAIL;
    if (card->ecc < 0) return UNSUPPORTED;
    *errors = type == 1 && counter == 0 ? (unsigned long long)card->ecc : 7777; /* uncorrected, since boot */
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Card *card, unsigned *count, Process *processes) {
    MAY_FAIL;
    if (card->procs < 0) return UNSUPPORTED;
    unsigned room = *count;
    *count = (unsigned)card->procs;
    if (*count > room) return TOO_SMALL;
    for (unsigned i = 0; i < *count; i++) processes[i] = (Process){1000 + i, 1 << 30, ~0u, ~0u};
    return OK;
}

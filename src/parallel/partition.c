#include <cohort-graph.h>

#include <math.h>

/* How many stages it takes when none may cost more than `most`; fills `first` on the way. Every
 * layer is kept back that a later stage needs to have one at all. */
static int fill(const double *costs, int count, int stages, double most, int *first)
{
    int stage = 0;
    double cost = 0;
    first[0] = 0;
    for (int i = 0; i < count; i++) {
        int must = count - i <= stages - 1 - stage; /* one for each stage that is left */
        if (i > first[stage] && (cost + costs[i] > most || must)) {
            if (++stage == stages)
                return stages + 1;
            first[stage] = i;
            cost = 0;
        }
        cost += costs[i];
    }
    return stage + 1;
}

static coh_status check_partition(const double *costs, int count, int stages, const int *first)
{
    if (!costs || !first || count < 1 || stages < 1)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_partition: %d layers in %d stages: both are at least 1, and costs and "
                        "first are not NULL",
                        count, stages);
    if (stages > count)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_partition: %d stages are more than the %d layers", stages, count);
    for (int i = 0; i < count; i++)
        if (!(costs[i] >= 0) || !isfinite(costs[i]))
            return coh_fail(
                COH_INVALID_ARGUMENT,
                "coh_partition: layer %d has the cost %g, which is negative or not finite", i,
                costs[i]);
    return COH_OK;
}

/*
 * The least that the dearest stage can cost is the cost of some run of layers: they are tried in
 * halves, by the sum up to each layer.
 */
coh_status coh_partition(const double *costs, int count, int stages, int *first)
{
    coh_status status = check_partition(costs, count, stages, first);
    if (status != COH_OK)
        return status;
    double least = 0, most = 0;
    for (int i = 0; i < count; i++) {
        least = costs[i] > least ? costs[i] : least;
        most += costs[i];
    }
    enum { HALVINGS = 100 }; /* more than a double has bits */
    for (int i = 0; i < HALVINGS && least < most; i++) {
        double middle = least + (most - least) / 2;
        if (fill(costs, count, stages, middle, first) <= stages)
            most = middle;
        else if (middle > least)
            least = middle;
        else
            break;
    }
    fill(costs, count, stages, most, first);
    first[stages] = count;
    return COH_OK;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties of link impairment: the rules, their seed, and the counts of faults. The
 * rules and the seed can be set at any time. Before the core exists, the shim keeps
 * them for it.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hghca_shim.h"

static char *hghca_get_faults(Object *object, Error **errp)
{
    HghcaState *s = HGHCA(object);

    return g_strdup(s->faults ? s->faults : "");
}

static void hghca_set_faults(Object *object, const char *value, Error **errp)
{
    HghcaState *s = HGHCA(object);
    char why[HGHCA_FAULTS_ERROR_BYTES];

    if (!hghca_core_set_faults(s->core, value, why, sizeof(why))) {
        error_setg(errp, "property 'faults': %s", *why ? why : "out of memory");
        return;
    }
    g_free(s->faults);
    s->faults = g_strdup(value);
}

static void hghca_get_fault_seed(Object *object, Visitor *v, const char *name, void *opaque,
                                 Error **errp)
{
    visit_type_uint64(v, name, &HGHCA(object)->fault_seed, errp);
}

static void hghca_set_fault_seed(Object *object, Visitor *v, const char *name, void *opaque,
                                 Error **errp)
{
    HghcaState *s = HGHCA(object);

    if (visit_type_uint64(v, name, &s->fault_seed, errp) && s->core) {
        hghca_core_set_fault_seed(s->core, s->fault_seed);
    }
}

static bool hghca_visit_fault_counts(HghcaState *s, Visitor *v, Error **errp)
{
    uint64_t held = s->core ? hghca_core_held_frames(s->core) : 0;

    for (unsigned i = 0; i < hghca_core_fault_counts(); i++) {
        uint64_t value = s->core ? hghca_core_fault_count(s->core, i) : 0;

        if (!visit_type_uint64(v, hghca_core_fault_count_name(i), &value, errp)) {
            return false;
        }
    }
    return visit_type_uint64(v, "held", &held, errp);
}

static void hghca_get_fault_counts(Object *object, Visitor *v, const char *name, void *opaque,
                                   Error **errp)
{
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    if (hghca_visit_fault_counts(HGHCA(object), v, errp)) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

void hghca_faults_class_init(ObjectClass *class)
{
    object_class_property_add_str(class, "faults", hghca_get_faults, hghca_set_faults);
    object_class_property_set_description(class, "faults",
        "Link impairment: rules, for example drop,rate=1%; delay,us=500");
    object_class_property_add(class, "fault-seed", "uint64", hghca_get_fault_seed,
                              hghca_set_fault_seed, NULL, NULL);
    object_class_property_set_description(class, "fault-seed",
        "Seed of random faults; setting it restarts the rules");
    object_class_property_add(class, "fault-counts", "HghcaFaultCounts", hghca_get_fault_counts,
                              NULL, NULL, NULL);
    object_class_property_set_description(class, "fault-counts",
        "Number of frames impaired since the device was created, by fault; frames held now");
}

/* Sets in the new core what the user set before. */
bool hghca_faults_open(HghcaState *s, Error **errp)
{
    char why[HGHCA_FAULTS_ERROR_BYTES];

    hghca_core_set_fault_seed(s->core, s->fault_seed);
    if (s->faults && !hghca_core_set_faults(s->core, s->faults, why, sizeof(why))) {
        error_setg(errp, "property 'faults': %s", *why ? why : "out of memory");
        return false;
    }
    return true;
}

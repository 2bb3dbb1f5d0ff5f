/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: a shrinker is allocated, registered and freed.  There, it has no private data. */
#ifndef COMPAT_HAS_SHRINKER_ALLOC
#include <linux/shrinker.h>
#include <linux/slab.h>

struct compat_shrinker {
	struct shrinker base;
	const char *name;
};

static inline struct shrinker *shrinker_alloc(unsigned int flags, const char *name)
{
	struct compat_shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (!shrinker)
		return NULL;
	shrinker->base.flags = flags;
	shrinker->base.seeks = DEFAULT_SEEKS;
	shrinker->name = name;
	return &shrinker->base;
}

/* What fails to be registered is not called. */
static inline void shrinker_register(struct shrinker *base)
{
	struct compat_shrinker *shrinker = container_of(base, struct compat_shrinker, base);

	if (register_shrinker(base, "%s", shrinker->name))
		pr_warn("%s: failed to register the shrinker\n", shrinker->name);
}

static inline void shrinker_free(struct shrinker *base)
{
	/* One that was not registered is left alone there. */
	unregister_shrinker(base);
	kfree(container_of(base, struct compat_shrinker, base));
}
#endif

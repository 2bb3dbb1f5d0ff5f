/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * After 6.1: the method remove of a platform driver returns nothing.  Before, the driver core
 * is given a driver of its own, whose remove calls the other one.
 */
#ifndef COMPAT_HAS_PLATFORM_REMOVE_VOID
#include <linux/platform_device.h>

struct compat_platform_driver {
	int (*probe)(struct platform_device *pdev);
	void (*remove)(struct platform_device *pdev);
	void (*shutdown)(struct platform_device *pdev);
	const struct platform_device_id *id_table;
	struct device_driver driver;
	struct platform_driver given;
};

static inline int compat_platform_remove(struct platform_device *pdev)
{
	struct platform_driver *given = to_platform_driver(pdev->dev.driver);

	container_of(given, struct compat_platform_driver, given)->remove(pdev);
	return 0;
}

static inline int compat_platform_driver_register(struct compat_platform_driver *driver,
						  struct module *owner)
{
	driver->given.probe = driver->probe;
	driver->given.remove = compat_platform_remove;
	driver->given.shutdown = driver->shutdown;
	driver->given.id_table = driver->id_table;
	driver->given.driver = driver->driver;
	return __platform_driver_register(&driver->given, owner);
}

static inline void compat_platform_driver_unregister(struct compat_platform_driver *driver)
{
	platform_driver_unregister(&driver->given);
}

#define platform_driver			compat_platform_driver
#undef platform_driver_register
#define platform_driver_register(d)	compat_platform_driver_register(d, THIS_MODULE)
#define platform_driver_unregister	compat_platform_driver_unregister
#endif

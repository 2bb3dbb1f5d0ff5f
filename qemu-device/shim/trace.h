#include "trace/trace-hw_hghca.h"

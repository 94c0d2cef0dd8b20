// SPDX-License-Identifier: Apache-2.0
// The description, read by the compiler after cuda.h: a parameter, a constant or a type that differs
// is "conflicting types". Nothing here is linked.
#include "protocol/api/cuda_driver.h"

#include "protocol/api/annotations.h"
#include "protocol/api/session_types.h"
#include "protocol/api/types.api.h"

#include "protocol/api/context.api.h"
#include "protocol/api/copy.api.h"
#include "protocol/api/device.api.h"
#include "protocol/api/event.api.h"
#include "protocol/api/launch.api.h"
#include "protocol/api/memory.api.h"
#include "protocol/api/module.api.h"
#include "protocol/api/session.api.h"
#include "protocol/api/stream.api.h"

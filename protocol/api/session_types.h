// SPDX-License-Identifier: Apache-2.0
// Structs of the session's own calls (session.api.h). They travel as their bytes, so they have no
// padding and only fixed-width members.
#ifndef REMORA_PROTOCOL_API_SESSION_TYPES_H
#define REMORA_PROTOCOL_API_SESSION_TYPES_H

#include <stdint.h>

// One attribute of a launch: a CUlaunchAttribute without its padding.
typedef struct remora_launch_attribute {
  uint32_t id; /* CUlaunchAttributeID */
  uint32_t reserved;
  uint64_t value[8]; /* CUlaunchAttributeValue */
} remora_launch_attribute;

// Where one kernel parameter lies in the parameter block.
typedef struct remora_kernel_parameter {
  uint32_t offset;
  uint32_t size;
} remora_kernel_parameter;

// What the client must know of a kernel before it can launch it.
typedef struct remora_kernel_facts_t {
  int32_t attributes[16]; /* by CUfunction_attribute */
  uint32_t parameter_count;
  uint32_t parameter_bytes;
} remora_kernel_facts_t;

#endif

// SPDX-License-Identifier: Apache-2.0
// What the types of the description are. Plain C numbers need no line. A type that only local calls
// use needs none either.

// Objects of a session: an ObjectId on the wire. A CUkernel may stand where a CUfunction is asked for.
HANDLE(CUcontext);
HANDLE(CUmodule);
HANDLE(CUlibrary);
HANDLE(CUfunction);
HANDLE(CUkernel);
HANDLE(CUstream);
HANDLE(CUevent);

// Device memory, at the same address on both sides.
ADDRESS(CUdeviceptr);

// A device, counted as the session counts.
ORDINAL(CUdevice);

// Numbers below the limit; the client refuses others before they travel, the decoder ends the session.
ENUM(CUlimit, CU_LIMIT_MAX);
ENUM(CUfunction_attribute, CU_FUNC_ATTRIBUTE_MAX);

// Bytes (session_types.h).
STRUCT(remora_launch_attribute);
STRUCT(remora_kernel_parameter);
STRUCT(remora_kernel_facts_t);

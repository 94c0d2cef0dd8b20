// SPDX-License-Identifier: Apache-2.0
// The annotation words of the description, all empty: for the compiler the description is plain C.
// protocol/generate/read.py reads the same text and keeps the words.
#ifndef REMORA_PROTOCOL_API_ANNOTATIONS_H
#define REMORA_PROTOCOL_API_ANNOTATIONS_H

// Before an entry: who answers, and whether the caller waits. Each entry has exactly one.
#define LOCAL             /* answered in the client; no record */
#define POSTED            /* a record; the caller does not wait unless it asks for the reply */
#define AWAITED           /* a record; the caller waits for the reply */
#define PUSHED            /* a record from the session to the client */
#define UNSUPPORTED(code) /* refused with this CUresult, said once in the log by name */

// Before an entry: more about it.
#define BY_HAND(...)         /* client, server: that side's behaviour is written by hand */
#define SINCE(version)       /* the driver version in which this form appeared */
#define TWIN(suffix, version) /* also exported with _ptsz or _ptds: stream 0 is the thread's own */
#define LOWERED(...)         /* no record of its own: it becomes one of these calls */

// Before a parameter: how it travels. Values, handles and device addresses need no word.
#define IN               /* one value behind a pointer, read */
#define OUT              /* one value behind a pointer, written */
#define INOUT            /* both */
#define IN_N(n)          /* array of n */
#define OUT_N(n)         /* array of at most n */
#define IN_BYTES(n)      /* n bytes */
#define OUT_BYTES(n)     /* at most n bytes */
#define STR              /* text that ends with a zero */
#define NULLABLE         /* may be null, which is distinct from empty */
#define NEW              /* object that the client names */
#define NEW_VA(n)        /* device range that the client chooses */
#define BULK_IN(n)       /* n bytes to the device, in the record or beside it */
#define BULK_OUT(n)      /* n bytes from the device, in the reply or beside it */
#define DEVICE_READ(n)   /* device range of n bytes that is read */
#define DEVICE_WRITE(n)  /* device range of n bytes that is written */
#define IMAGE            /* module image: its content hash travels */
#define KERNEL_PARAMS(f) /* parameter block, packed by the layout of kernel f */
#define CALLBACK         /* function of the program; never travels */
#define OPAQUE           /* memory of the program without a meaning elsewhere; never travels */

// In types.api.h: what a type is. Each is checked here as far as a compiler can.
#define HANDLE(type) _Static_assert(sizeof(type) == sizeof(void*), #type " is a handle")
#define ADDRESS(type) _Static_assert(sizeof(type) == 8, #type " is a device address")
#define ORDINAL(type) _Static_assert(sizeof(type) == 4, #type " is a device ordinal")
#define ENUM(type, limit) \
  _Static_assert(sizeof(type) == 4 && (limit) > 0, #type " has the values below " #limit)
#define STRUCT(type) _Static_assert(sizeof(type) % 4 == 0, #type " travels as its bytes")

#endif

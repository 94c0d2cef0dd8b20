// SPDX-License-Identifier: Apache-2.0
// The session's own calls: what CUDA has no call for, and what the session pushes.

// ---- From the client

// The default stream of the header's context, named by the client.
POSTED BY_HAND(client, server)
CUresult remora_legacy_stream(NEW CUstream *stream);

// Does the session's cache have this image?
AWAITED BY_HAND(client, server)
CUresult remora_module_wanted(IMAGE const void *image, OUT int32_t *wanted);

// The bytes of an image, in the record or as a bulk transfer.
POSTED BY_HAND(client, server)
CUresult remora_module_bytes(IMAGE const void *image, BULK_IN(size) const void *bytes, size_t size);

// Asked once, at a kernel's first use: loads it. The result is the load's outcome.
AWAITED BY_HAND(client, server)
CUresult remora_kernel_facts(CUfunction f, OUT remora_kernel_facts_t *facts,
                             OUT_N(max_parameters) remora_kernel_parameter *parameters,
                             uint32_t max_parameters);

// A launch with attributes: cuLaunchKernelEx.
POSTED BY_HAND(client, server)
CUresult remora_launch(CUfunction f, uint32_t gridDimX, uint32_t gridDimY, uint32_t gridDimZ,
                       uint32_t blockDimX, uint32_t blockDimY, uint32_t blockDimZ,
                       uint32_t sharedMemBytes, CUstream hStream,
                       IN_N(attribute_count) const remora_launch_attribute *attributes,
                       uint32_t attribute_count, KERNEL_PARAMS(f) void **kernelParams);

// ---- Pushed by the session

// The answer to record `sequence`; `outputs` is what its <call>_reply codec made.
PUSHED
void remora_reply(uint64_t sequence, int32_t result, IN_BYTES(output_bytes) const void *outputs,
                  size_t output_bytes);

// All that was posted on the stream up to `sequence` has completed.
PUSHED
void remora_stream_progress(CUstream stream, uint64_t sequence);

// The record of the event that was posted as `sequence` has completed, at this time on the session's
// event clock; not a number where the event keeps no time.
PUSHED
void remora_event_done(CUevent event, uint64_t sequence, double time_ms);

// A posted call failed. Sticky: the context is lost, as CUDA says it.
PUSHED
void remora_async_error(uint64_t sequence, int32_t result, uint32_t sticky);

// All bytes of this device-to-host transfer were sent. Records after it wait until they landed.
PUSHED
void remora_transfer_done(uint64_t transfer);

// SPDX-License-Identifier: Apache-2.0
// Several streams, each with its own copy in, kernel and copy back from pinned memory; a last
// stream waits for all of them through events and combines their results; events take the time.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                        \
  do {                                                                          \
    const cudaError_t cuda_status = (call);                                     \
    if (cuda_status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(cuda_status)); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

__host__ __device__ unsigned int scramble(unsigned int value, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    value ^= value >> 15;
    value = value * 0x2c1b3c6du + round;
  }
  return value;
}

__global__ void scramble_all(unsigned int* values, int n, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = scramble(values[i], rounds);
}

/// parts lie one behind the other; combined[i] is the sum of their i-th elements.
__global__ void combine(const unsigned int* parts, int part_count, unsigned int* combined, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned int sum = 0;
  for (int part = 0; part < part_count; ++part) sum += parts[part * n + i];
  combined[i] = sum;
}

int main() {
  const int part_count = 4, n = 50'000, threads = 128, blocks = (n + threads - 1) / threads;
  const size_t part_bytes = n * sizeof(unsigned int);

  unsigned int *host, *host_combined, *device, *device_combined;
  CUDA_CHECK(cudaMallocHost(&host, part_count * part_bytes));
  CUDA_CHECK(cudaMallocHost(&host_combined, part_bytes));
  CUDA_CHECK(cudaMalloc(&device, part_count * part_bytes));
  CUDA_CHECK(cudaMalloc(&device_combined, part_bytes));
  for (int i = 0; i < part_count * n; ++i) host[i] = 17u * i;

  cudaStream_t streams[part_count], last;
  cudaEvent_t begin, end, part_done[part_count];
  CUDA_CHECK(cudaStreamCreate(&last));
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  for (int part = 0; part < part_count; ++part) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&streams[part], cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreateWithFlags(&part_done[part], cudaEventDisableTiming));
  }

  CUDA_CHECK(cudaEventRecord(begin, last));
  for (int part = 0; part < part_count; ++part) {
    unsigned int* of_host = host + part * n;
    unsigned int* of_device = device + part * n;
    CUDA_CHECK(cudaStreamWaitEvent(streams[part], begin, 0));
    CUDA_CHECK(
        cudaMemcpyAsync(of_device, of_host, part_bytes, cudaMemcpyHostToDevice, streams[part]));
    // Each stream works for a different time, so that the waits below matter.
    scramble_all<<<blocks, threads, 0, streams[part]>>>(of_device, n, 10 * (part + 1));
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(
        cudaMemcpyAsync(of_host, of_device, part_bytes, cudaMemcpyDeviceToHost, streams[part]));
    CUDA_CHECK(cudaEventRecord(part_done[part], streams[part]));
    CUDA_CHECK(cudaStreamWaitEvent(last, part_done[part], 0));
  }
  combine<<<blocks, threads, 0, last>>>(device, part_count, device_combined, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(
      cudaMemcpyAsync(host_combined, device_combined, part_bytes, cudaMemcpyDeviceToHost, last));
  CUDA_CHECK(cudaEventRecord(end, last));
  CUDA_CHECK(cudaEventSynchronize(end));

  // The last stream came after all others, so all of it is done.
  for (int part = 0; part < part_count; ++part) CUDA_CHECK(cudaStreamQuery(streams[part]));
  float elapsed_ms = -1;
  CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, begin, end));
  if (!(elapsed_ms >= 0) || !std::isfinite(elapsed_ms)) {
    std::fprintf(stderr, "the events are %g ms apart\n", elapsed_ms);
    return 1;
  }

  for (int i = 0; i < n; ++i) {
    unsigned int sum = 0;
    for (int part = 0; part < part_count; ++part) {
      const unsigned int expected = scramble(17u * (part * n + i), 10 * (part + 1));
      if (host[part * n + i] != expected) {
        std::fprintf(stderr, "element %d of stream %d is %u, not %u\n", i, part, host[part * n + i],
                     expected);
        return 1;
      }
      sum += expected;
    }
    if (host_combined[i] != sum) {
      std::fprintf(stderr, "combined element %d is %u, not %u\n", i, host_combined[i], sum);
      return 1;
    }
  }

  for (int part = 0; part < part_count; ++part) {
    CUDA_CHECK(cudaStreamDestroy(streams[part]));
    CUDA_CHECK(cudaEventDestroy(part_done[part]));
  }
  CUDA_CHECK(cudaStreamDestroy(last));
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  CUDA_CHECK(cudaFree(device));
  CUDA_CHECK(cudaFree(device_combined));
  CUDA_CHECK(cudaFreeHost(host));
  CUDA_CHECK(cudaFreeHost(host_combined));
  std::printf("streams_events: %d streams of %d elements, %.2f ms: correct\n", part_count, n,
              elapsed_ms);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Sum, least and greatest of many numbers (warp shuffles, then atomics on global memory) and their
// histogram (atomics on shared memory, then on global memory).
#include <cuda_runtime.h>

#include <algorithm>
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

struct Summary {
  unsigned long long sum;
  unsigned int least;
  unsigned int greatest;
};

constexpr int kBins = 64;
constexpr int kThreads = 256;

__device__ unsigned long long warp_sum(unsigned long long value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
  return value;
}

__global__ void summarize(const unsigned int* values, int n, Summary* summary) {
  __shared__ unsigned long long sums[kThreads / 32];
  unsigned long long sum = 0;
  unsigned int least = ~0u, greatest = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += values[i];
    least = min(least, values[i]);
    greatest = max(greatest, values[i]);
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    least = min(least, __shfl_xor_sync(~0u, least, mask));
    greatest = max(greatest, __shfl_xor_sync(~0u, greatest, mask));
  }
  sum = warp_sum(sum);

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) {
    sums[warp] = sum;
    atomicMin(&summary->least, least);
    atomicMax(&summary->greatest, greatest);
  }
  __syncthreads();
  if (warp == 0) {
    sum = warp_sum(lane < kThreads / 32 ? sums[lane] : 0);
    if (lane == 0) atomicAdd(&summary->sum, sum);
  }
}

__global__ void histogram(const unsigned int* values, int n, unsigned int* bins) {
  __shared__ unsigned int counts[kBins];
  for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) counts[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[values[i] % kBins], 1u);
  __syncthreads();
  for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) atomicAdd(&bins[bin], counts[bin]);
}

int main() {
  const int n = 500'000, blocks = 64;
  std::vector<unsigned int> values(n);
  unsigned int state = 1;
  for (unsigned int& value : values) {
    state = state * 1664525u + 1013904223u;
    value = (state >> 8) / ((state & 3) + 1);  // not uniform, so that bins differ
  }

  unsigned int *device_values, *device_bins;
  Summary* device_summary;
  Summary summary{0, ~0u, 0};
  std::vector<unsigned int> bins(kBins);
  CUDA_CHECK(cudaMalloc(&device_values, n * sizeof(unsigned int)));
  CUDA_CHECK(cudaMalloc(&device_bins, kBins * sizeof(unsigned int)));
  CUDA_CHECK(cudaMalloc(&device_summary, sizeof(Summary)));
  CUDA_CHECK(
      cudaMemcpy(device_values, values.data(), n * sizeof(unsigned int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_bins, 0, kBins * sizeof(unsigned int)));
  CUDA_CHECK(cudaMemcpy(device_summary, &summary, sizeof summary, cudaMemcpyHostToDevice));

  summarize<<<blocks, kThreads>>>(device_values, n, device_summary);
  CUDA_CHECK(cudaGetLastError());
  histogram<<<blocks, kThreads>>>(device_values, n, device_bins);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(&summary, device_summary, sizeof summary, cudaMemcpyDeviceToHost));
  CUDA_CHECK(
      cudaMemcpy(bins.data(), device_bins, kBins * sizeof(unsigned int), cudaMemcpyDeviceToHost));

  Summary expected{0, *std::min_element(values.begin(), values.end()),
                   *std::max_element(values.begin(), values.end())};
  std::vector<unsigned int> expected_bins(kBins);
  for (const unsigned int value : values) {
    expected.sum += value;
    ++expected_bins[value % kBins];
  }
  if (summary.sum != expected.sum || summary.least != expected.least ||
      summary.greatest != expected.greatest) {
    std::fprintf(stderr, "sum %llu, least %u, greatest %u; expected %llu, %u, %u\n", summary.sum,
                 summary.least, summary.greatest, expected.sum, expected.least, expected.greatest);
    return 1;
  }
  for (int bin = 0; bin < kBins; ++bin) {
    if (bins[bin] != expected_bins[bin]) {
      std::fprintf(stderr, "bin %d holds %u, not %u\n", bin, bins[bin], expected_bins[bin]);
      return 1;
    }
  }
  CUDA_CHECK(cudaFree(device_values));
  CUDA_CHECK(cudaFree(device_bins));
  CUDA_CHECK(cudaFree(device_summary));
  std::printf("reduction_histogram: %d values, sum %llu, %d bins: correct\n", n, summary.sum,
              kBins);
  return 0;
}

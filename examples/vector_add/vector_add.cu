// SPDX-License-Identifier: Apache-2.0
// Adds two vectors, as often as asked: launch k computes a + (result of launch k - 1), so that a
// launch that is lost or done twice shows in the result.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#define CUDA_CHECK(call)                                                        \
  do {                                                                          \
    const cudaError_t cuda_status = (call);                                     \
    if (cuda_status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(cuda_status)); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

__global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

namespace {

int option(int argc, char** argv, const char* name, int otherwise) {
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::strcmp(argv[i], name) == 0) return std::atoi(argv[i + 1]);
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = option(argc, argv, "--elements", 1'000'000);
  const int launches = option(argc, argv, "--launches", 1);
  if (n < 1 || launches < 1) {
    std::fprintf(stderr, "usage: vector_add [--elements N] [--launches N]\n");
    return 2;
  }

  // Small whole numbers: every sum is exact in a float.
  std::vector<float> a(n), b(n), result(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i % 7);
    b[i] = static_cast<float>(i % 1000);
  }

  const size_t bytes = n * sizeof(float);
  float *device_a, *device_b, *device_sum;
  CUDA_CHECK(cudaMalloc(&device_a, bytes));
  CUDA_CHECK(cudaMalloc(&device_b, bytes));
  CUDA_CHECK(cudaMalloc(&device_sum, bytes));
  CUDA_CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

  const int threads = 256;
  const int blocks = (n + threads - 1) / threads;
  for (int launch = 0; launch < launches; ++launch) {
    add<<<blocks, threads>>>(device_a, device_b, device_sum, n);
    CUDA_CHECK(cudaGetLastError());
    std::swap(device_b, device_sum);  // the next launch adds to this one's result
  }
  CUDA_CHECK(cudaMemcpy(result.data(), device_b, bytes, cudaMemcpyDeviceToHost));

  for (int i = 0; i < n; ++i) {
    const float expected = b[i] + static_cast<float>(launches) * a[i];
    if (result[i] != expected) {
      std::fprintf(stderr, "element %d is %g, not %g\n", i, result[i], expected);
      return 1;
    }
  }
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_sum));
  std::printf("vector_add: %d elements, %d launches: correct\n", n, launches);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Kernels and variables whose layouts the tests know by the rules of the C++ ABI.

struct Odd {
  double value;
  char tail[9];
};
struct Large {
  char bytes[6000];
};

__device__ int counter;
__constant__ float weights[7];
__managed__ int shared_flag = 3;
__device__ double table[3] = {1, 2, 3};

extern "C" __global__ void no_parameters() { counter = static_cast<int>(threadIdx.x); }

// Offsets 0, 8, 12, 16; sizes 8, 4, 1, 8.
extern "C" __global__ void scalars(float* out, int n, char c, double d) {
  out[n] = static_cast<float>(n + c + d + weights[n] + shared_flag + table[n]);
}

// Offsets 0, 24, 32, 48; sizes 24, 2, 16, 8.
extern "C" __global__ void structs(Odd odd, short s, float4 v, const int* __restrict__ in) {
  extern __shared__ float scratch[];
  scratch[threadIdx.x] = static_cast<float>(odd.value) + v.x + s + in[0];
  __syncthreads();
  counter = static_cast<int>(scratch[0]);
}

// Offsets 0, 8, 6008; sizes 8, 6000, 2: beyond the 4 KiB of the older parameter record.
extern "C" __global__ void large(int* out, Large block, short s) { out[0] = block.bytes[s]; }

template <typename T>
__global__ void sized(T value) {
  counter = static_cast<int>(sizeof value);
}
template __global__ void sized<long long>(long long);

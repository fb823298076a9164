// What the kernels of gradform share: functions for vectors, parts of sums, rows for threads.
//
// The functions are those of the C library, which has them for vectors as well (libmvec, at most 4
// units in the last place): declared here as such, so that no other rule of arithmetic is relaxed.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>
#include <omp.h>

// What a kernel answers.
enum { DONE = 0, OUT_OF_RANGE = 1, NO_MEMORY = 2 };

#if defined(__GLIBC__) && defined(__x86_64__) && !defined(GRADFORM_SCALAR)
#define VECTOR __attribute__((simd("notinbranch")))
#else
#define VECTOR
#endif

#define DECLARED(name)                                            \
    extern "C" VECTOR __attribute__((const)) double name(double) noexcept; \
    extern "C" VECTOR __attribute__((const)) float name##f(float) noexcept;
#define ONE(name)                                                 \
    DECLARED(name)                                                \
    static inline float name(float x) { return name##f(x); }
ONE(exp) ONE(log) ONE(log1p) ONE(expm1) ONE(tanh) ONE(sinh) ONE(cosh) ONE(sin) ONE(cos) ONE(tan)
ONE(atan) ONE(asin) ONE(acos) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erf) ONE(erfc)
extern "C" VECTOR __attribute__((const)) double pow(double, double) noexcept;
extern "C" VECTOR __attribute__((const)) float powf(float, float) noexcept;
static inline float pow(float x, float y) { return powf(x, y); }

static inline double floor(double x) { return __builtin_floor(x); }
static inline float floor(float x) { return __builtin_floorf(x); }
static inline double ceil(double x) { return __builtin_ceil(x); }
static inline float ceil(float x) { return __builtin_ceilf(x); }
static inline double square_root(double x) { return __builtin_sqrt(x); }
static inline float square_root(float x) { return __builtin_sqrtf(x); }
static inline double absolute(double x) { return __builtin_fabs(x); }
static inline float absolute(float x) { return __builtin_fabsf(x); }
static const float infinity = __builtin_inff();

template <class Real> static inline Real square(Real x) { return x * x; }
template <class Real> static inline Real cube(Real x) { return x * x * x; }
template <class Real> static inline Real sign(Real x) { return Real(x > 0) - Real(x < 0); }
// What is no number stays none, as in torch.
template <class Real> static inline Real larger(Real x, Real y) { return x > y || x != x ? x : y; }
template <class Real> static inline Real smaller(Real x, Real y) { return x < y || x != x ? x : y; }
template <class Real> static inline Real unless(int unordered, Real x) {
    return unordered ? Real(__builtin_nanf("")) : x;
}
static inline int64_t smaller_size(int64_t a, int64_t b) { return a < b ? a : b; }

// An array for one thread.
template <class Real> class Scratch {
public:
    Scratch(int64_t count, Real first) : Scratch(count) { fill(first); }
    explicit Scratch(int64_t count) : count(count) {
        const size_t bytes = (size_t(count) * sizeof(Real) + 63) / 64 * 64;
        entries = static_cast<Real*>(aligned_alloc(64, bytes ? bytes : 64));
        if (!entries) throw std::bad_alloc();
    }
    ~Scratch() { free(entries); }
    Scratch(const Scratch&) = delete;
    void fill(Real value) {
        for (int64_t i = 0; i < count; ++i) entries[i] = value;
    }
    Real* entries;
    int64_t count;
};

template <class Real> static void add_block(Scratch<Real>& block, double* total) {
    for (int64_t i = 0; i < block.count; ++i) {
        total[i] += double(block.entries[i]);
        block.entries[i] = 0;
    }
}

// What each thread has of a reduction, put together in the order of the threads.
template <class Real>
static void sum_of_parts(const double* parts, int threads, int64_t count, Real* result) {
    for (int64_t i = 0; i < count; ++i) {
        double total = 0;
        for (int t = 0; t < threads; ++t) total += parts[t * count + i];
        result[i] = Real(total);
    }
}
template <class Real>
static void max_of_parts(const Real* parts, int threads, int64_t count, Real* result) {
    for (int64_t i = 0; i < count; ++i) {
        Real most = parts[i];
        for (int t = 1; t < threads; ++t) most = larger(most, parts[t * count + i]);
        result[i] = most;
    }
}

// The rows in as many pieces as there are threads; below some work one thread is faster.
template <class Rows> static void parallel(int64_t rows, int64_t work, int threads, Rows piece) {
    if (threads <= 1 || work < 32768 || rows < 2) {
        piece(0, 0, rows);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const int64_t thread = omp_get_thread_num(), count = omp_get_num_threads();
        piece(int(thread), rows * thread / count, rows * (thread + 1) / count);
    }
}

// Whether all labels lie inside of their axis.
static inline bool in_range(const int64_t* labels, int64_t count, int64_t size) {
    bool inside = true;
    for (int64_t i = 0; i < count; ++i) inside &= labels[i] >= 0 && labels[i] < size;
    return inside;
}

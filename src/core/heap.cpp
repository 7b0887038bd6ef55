#include "src/core/heap.h"

#include <cstdlib>  // __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace settrain {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);         // large blocks come from the heap, too,
  mallopt(M_TRIM_THRESHOLD, -1);  // which never shrinks
  mallopt(M_TOP_PAD, 64 << 20);   // and grows by 64 MiB at least
#endif
}

void share_arenas() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);
#endif
}

void give_back_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace settrain

#if LMDB
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The address space of this process.
enum AddressSpace {
  /// Returns whether the process could map so many bytes in one piece.
  static func isFree(_ size: Int) -> Bool {
    let place = mmap(nil, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard let place, place != MAP_FAILED else { return false }
    munmap(place, size)
    return true
  }
}
#endif

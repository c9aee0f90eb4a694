#if LMDB
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The initial size of an environment's memory map.
///
/// A single environment gets its preferred size; many environments share the address space. A process has 128 TiB on
/// most 64-bit machines. However many environments it opens, they take a quarter of that and leave the rest to the
/// program.
enum InitialMapSize {
  /// The number of environments after which the size for further environments is halved.
  private static let groupSize = 16

  /// The minimum size of a map in bytes.
  private static let minimum = 1 << 20

  /// Returns the size to try first.
  ///
  /// - Parameters:
  ///   - preferred: The size for a single environment, in bytes.
  ///   - openCount: The number of environments that the process has open.
  static func size(preferring preferred: Int, besides openCount: Int) -> Int {
    let halved = preferred >> min(openCount / groupSize, Int.bitWidth - 1)
    return max(min(preferred, minimum), halved)
  }

  /// The address space that the maps leave to the program, regardless of their number.
  ///
  /// Maps of the minimum size are exempt.
  private static let programReserve = 1 << 33

  /// The maximum file size in bytes that the system allows the process to write (`ulimit -f`), or `nil` if there is no
  /// limit.
  static var fileSizeLimit: Int? {
    var limit = rlimit()
    #if canImport(Glibc)
    let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0
    #else
    let isKnown = getrlimit(RLIMIT_FSIZE, &limit) == 0
    #endif
    // Values that do not fit, including the one that means infinity, are no limit.
    return isKnown ? Int(exactly: limit.rlim_cur) : nil
  }

  /// Returns a size, reduced to the file size limit if necessary.
  ///
  /// A full map is detected before anything is written, but a write beyond the limit ends the process.
  static func withinFileSizeLimit(_ size: Int) -> Int {
    min(size, fileSizeLimit ?? size)
  }

  /// Returns the address space that must be free for a map of a size, so that the map takes only a part of it.
  static func reserve(for size: Int) -> Int {
    let (reserve, overflow) = size.multipliedReportingOverflow(by: 4)
    return overflow ? size : max(reserve, programReserve)
  }

  /// Returns the next size to try after the system refused one, or `nil` if there is no smaller size.
  ///
  /// The next size is much smaller. Half of the refused size might take most of the address space and leave the program
  /// without memory.
  static func size(afterRefusalOf refused: Int) -> Int? {
    refused > minimum ? max(minimum, refused / 16) : nil
  }
}

/// The address space of this process.
enum AddressSpace {
  /// Returns whether the process could map this number of bytes in one piece.
  static func isFree(_ size: Int) -> Bool {
    let place = mmap(nil, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard let place, place != MAP_FAILED else { return false }
    munmap(place, size)
    return true
  }
}
#endif

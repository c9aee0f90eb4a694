#if LMDB
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// How much address space an environment asks for when it is opened.
///
/// An environment that is alone may have what it prefers; many share what there is. A process has 128 TiB on most machines of
/// 64 bits: however many environments it opens, they take a quarter of it, and leave the rest to the program.
enum InitialMapSize {
  /// After so many environments, further ones get half.
  private static let groupSize = 16

  /// Below this no map is made smaller.
  private static let minimum = 1 << 20

  /// The size to try first.
  ///
  /// - Parameters:
  ///   - preferred: What an environment alone gets, in bytes.
  ///   - openCount: How many the process has open.
  static func size(preferring preferred: Int, besides openCount: Int) -> Int {
    let halved = preferred >> min(openCount / groupSize, Int.bitWidth - 1)
    return max(min(preferred, minimum), halved)
  }

  /// What the maps leave to the program however many there are, but for those of the minimum.
  private static let programReserve = 1 << 33

  /// The most bytes that the system lets the process write into a file (`ulimit -f`); `nil` if there is no such limit.
  static var fileSizeLimit: Int? {
    var limit = rlimit()
    #if canImport(Glibc)
    let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0
    #else
    let isKnown = getrlimit(RLIMIT_FSIZE, &limit) == 0
    #endif
    // Greater ones, and the one that stands for none, are no limit.
    return isKnown ? Int(exactly: limit.rlim_cur) : nil
  }

  /// A size, or less if files may not become that large: a map that is full is found before anything is written, where a
  /// write beyond the limit ends the process.
  static func withinFileSizeLimit(_ size: Int) -> Int {
    min(size, fileSizeLimit ?? size)
  }

  /// How much address space has to be free for a map of a size, so that it takes a part of it only.
  static func reserve(for size: Int) -> Int {
    let (reserve, overflow) = size.multipliedReportingOverflow(by: 4)
    return overflow ? size : max(reserve, programReserve)
  }

  /// The size to try when the system refuses one, or `nil` where there is none smaller.
  ///
  /// It is much smaller: half of what was refused might be most of what there is, and leave the program without memory.
  static func size(afterRefusalOf refused: Int) -> Int? {
    refused > minimum ? max(minimum, refused / 16) : nil
  }
}
#endif
